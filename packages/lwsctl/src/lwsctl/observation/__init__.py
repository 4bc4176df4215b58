"""Reads or watches API objects, and converts them to views and logs for commands and the Python client."""
