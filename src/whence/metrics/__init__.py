"""Judging explanations: metrics on a Game and an Attribution, always beside a random control."""
