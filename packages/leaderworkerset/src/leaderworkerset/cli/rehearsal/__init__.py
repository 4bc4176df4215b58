"""What a manifest needs of its cluster: read from the manifest, and simulated here. Pure."""
