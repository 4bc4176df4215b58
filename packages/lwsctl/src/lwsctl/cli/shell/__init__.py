"""The command line: reorders options, completes names, and shows examples."""
