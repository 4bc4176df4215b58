"""Implements commands that inspect running workloads, such as trees, descriptions, events and files."""
