"""The parts of the lab ``debate``: texts, network, training, and one file for each formula or test.

They stand apart from the lab so that each can be tested alone.
"""
