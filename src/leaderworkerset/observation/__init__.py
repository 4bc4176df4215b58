"""Objects of the API as views and logs: read once, or followed. What the Python client and the commands share."""
