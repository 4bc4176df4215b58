"""Commands that start, stop and list local clusters."""
