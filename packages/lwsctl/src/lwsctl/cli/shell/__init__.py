"""The command line: moves options to the front, completes names, shows examples."""
