"""The commands that start and stop clusters of this machine; only they import `localkube`, and only when they run."""
