"""Scores that other tools made (lime, shap, captum, plain arrays), laid on a text's units."""
