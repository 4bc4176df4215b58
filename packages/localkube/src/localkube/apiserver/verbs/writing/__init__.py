"""Implements the verbs that write: create, update, patch, delete, and the subresources."""
