"""The manager configuration file, with its types and validation."""
