"""Scores that other tools made (lime, shap, captum, plain arrays), laid on the units of a text by their characters."""
