"""Checks an installation and this machine. Converts observed data to numbered results with fixes."""
