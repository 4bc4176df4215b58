"""Serves admission over HTTPS, and manages the server certificates."""
