"""Sets of a cluster for the output of commands: read once, viewed, diagnosed."""
