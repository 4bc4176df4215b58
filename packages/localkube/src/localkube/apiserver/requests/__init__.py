"""Implements the parts of a request, such as options, bodies and formats, and the watch broadcaster."""
