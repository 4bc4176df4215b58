"""The requirements of a manifest on its cluster: read from the manifest, and simulated here. Pure."""
