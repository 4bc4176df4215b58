"""Implements the command line, which reorders options, completes names, and shows examples."""
