"""Implements components that all pods of a node share: hosts files, objects, events, and deletions."""
