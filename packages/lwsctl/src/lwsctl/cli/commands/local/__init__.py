"""The commands that start, stop and list clusters of this machine."""
