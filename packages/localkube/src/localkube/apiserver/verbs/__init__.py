"""The API verbs, one per file, in `reading/` and `writing/`, with their dependencies (`backend.py`)."""
