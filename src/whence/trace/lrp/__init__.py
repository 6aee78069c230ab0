"""Layer-wise relevance propagation on unmodified models.

Rules by operation, a mode that puts them in place, and the two runs.
"""
