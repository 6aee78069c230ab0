"""Judging explanations: metrics on a game and rankings, always beside random rankings."""
