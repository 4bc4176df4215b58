"""Reads or watches API objects, and converts them to views and logs for the Python client and the commands."""
