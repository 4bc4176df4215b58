"""Implements the state of one pod, its next steps, and its status in the API."""
