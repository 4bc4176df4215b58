"""Stores objects at all retained revisions, and sends change notifications."""
