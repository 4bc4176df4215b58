"""A runtime for Kubernetes controllers of any kind, with a client, caches, a work queue, an executor and servers."""

__version__ = "0.2.0"
