"""Verbs that read: get, list, watch, logs."""
