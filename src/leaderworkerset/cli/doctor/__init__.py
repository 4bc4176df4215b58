"""Checks of an installation and of this machine: what was observed in, numbered findings with their fix out."""
