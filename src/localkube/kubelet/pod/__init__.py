"""One pod: what is known of it, what to do next, what the API is told."""
