"""Retraining: models that are trained anew, to judge explanations or to take removals in stride."""
