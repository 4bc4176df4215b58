"""The configuration of the manager: its file, its values, and what they may be."""
