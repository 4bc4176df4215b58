"""The verbs of the API, one file each: `reading/` and `writing/`, with their collaborators (`backend.py`)."""
