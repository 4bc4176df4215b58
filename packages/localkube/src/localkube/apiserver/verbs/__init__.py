"""The API verbs, one per file: `reading/` and `writing/`, with their dependencies (`backend.py`)."""
