"""Implements a client for the verbs of the Kubernetes API."""
