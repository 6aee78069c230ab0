"""Writing text with a causal model: from the scores of the next token to a continuation."""
