"""The verbs of the API: `reading/` and `writing/`, one file each, and what they work with."""
