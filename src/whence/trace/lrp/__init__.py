"""Layer-wise relevance propagation on unmodified models: rules by operation, a mode that puts them in place, and the two runs."""
