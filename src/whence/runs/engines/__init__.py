"""Engines: who does the parts. Each gives parts as they are done."""
