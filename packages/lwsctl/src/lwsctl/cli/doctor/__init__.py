"""Checks an installation and this machine. Converts the observed data to numbered results with fixes."""
