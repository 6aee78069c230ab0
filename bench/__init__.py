"""Ratios to the floor and to peers. Run with ``make bench``, or ``python -m bench --help``."""
