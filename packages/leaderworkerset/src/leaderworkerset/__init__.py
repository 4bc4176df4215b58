"""Manages groups of pods (a leader and its workers), which are started, updated and scaled as a unit."""

__version__ = "0.2.0"
