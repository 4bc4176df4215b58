"""The logs of containers: how they are written, kept and read."""
