"""The command `lws`, the dashboard, the diagnosis and the Python client of LeaderWorkerSets."""

__version__ = "0.2.0"
