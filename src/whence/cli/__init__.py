"""The command line: one thin module for each command.

Nothing heavy is imported before a command runs.
"""
