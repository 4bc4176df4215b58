"""Implements container log files: format, writing, rotation and reading."""
