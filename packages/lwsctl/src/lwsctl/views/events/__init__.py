"""Sorts events, and finds the warnings that explain the state of a view."""
