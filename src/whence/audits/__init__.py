"""Tests of attention as an explanation: one file each, all on the same cases."""
