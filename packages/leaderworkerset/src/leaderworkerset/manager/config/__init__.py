"""The configuration of the manager: its file, its types and their validation."""
