"""One pod: what is known of it, what to do next, what is reported to the API."""
