"""What is done where a caller says nothing, declared once for Python and for the command line."""

from __future__ import annotations

# The method of whence.generate and whence.context. It is the cheapest that answers all that they
# are asked (contrasts of texts and divergences too, in every family) and that our own published
# numbers show to be better than random on written text: docs/generate.md, "Which method".
METHOD_OF_WRITTEN = "occlusion"
# The method of whence.explain. Of those that our own answer (docs/our-answer.md) shows to be better
# than random on encoders and on a decoder it is the cheapest that every family has: a pass for each
# word and one more. Integrated gradients take about forty with their ways back, and are not better
# than random on the decoder.
METHOD_OF_A_TEXT = "occlusion"
