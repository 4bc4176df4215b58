"""One pod: its state, its next steps, its status in the API."""
