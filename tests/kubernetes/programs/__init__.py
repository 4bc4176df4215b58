"""Renders the packages of an installation with the tools that users have."""
