"""Checks of an installation and of this machine: observed facts in, numbered results with their fix out."""
