"""What a manifest needs of the cluster it was written for: read from it, and simulated here. Pure."""
