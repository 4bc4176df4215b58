"""The packages of an installation, rendered by the tools that render them for users."""
