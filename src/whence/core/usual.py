"""What is done where a caller says nothing, declared once for Python and for the command line."""

from __future__ import annotations

# The method of whence.generate and whence.context. It is the cheapest that answers all that they
# are asked (contrasts of texts and divergences too, in every family) and that our own published
# numbers show to be better than random on written text: docs/generate.md, "Which method".
METHOD_OF_WRITTEN = "occlusion"
