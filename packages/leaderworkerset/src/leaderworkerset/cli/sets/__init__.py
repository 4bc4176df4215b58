"""Sets of a cluster as commands tell of them: read once, viewed, diagnosed."""
