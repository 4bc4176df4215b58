"""The runtime of Kubernetes controllers for any kind: objects, client, cache, work queue, executor, serving."""

__version__ = "0.2.0"
