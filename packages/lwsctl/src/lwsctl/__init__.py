"""Contains the `lws` command, the dashboard, the diagnosis and the Python client for LeaderWorkerSets."""

__version__ = "0.2.0"
