"""Implements the verbs that read: get, list, watch and logs."""
