"""Reads or follows objects of the API as views and logs, for the Python client and the commands."""
