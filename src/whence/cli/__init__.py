"""The command line: one thin module per command. Nothing heavy is imported before a command runs."""
