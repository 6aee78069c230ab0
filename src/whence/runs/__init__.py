"""Many texts: a data set worked through in parts, so that a crash loses nothing."""
