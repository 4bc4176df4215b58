"""Detects the accelerators of this machine, assigns them to containers, and monitors them."""
