"""The concepts: passages, units, targets, attributions. It needs numpy and nothing else of ours."""
