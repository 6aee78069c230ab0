"""Models: loading them, and the few things that explaining needs of them."""
