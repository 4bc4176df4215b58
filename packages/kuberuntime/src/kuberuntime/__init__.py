"""Provides a client, caches, a work queue, an executor and servers for Kubernetes controllers."""

__version__ = "0.2.0"
