"""The single-layer attention classifier and its explanations as formulas: gradients, the limits of LIME, and exact values."""
