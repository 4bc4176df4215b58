"""Renders the installation packages with the tools that users have."""
