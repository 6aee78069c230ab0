"""The concepts: passages, units, targets, attributions. numpy only; imports nothing else of ours."""
