"""The Trace: one forward (and one backward) under observation; one home for every hook."""
