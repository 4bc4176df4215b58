"""Implements the API verbs in `reading/` and `writing/`, one per file, with their backend (`backend.py`)."""
