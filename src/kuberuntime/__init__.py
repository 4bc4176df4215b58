"""The runtime of Kubernetes programs: words, client, watch, cache, queue, controllers, serving. It knows no particular kind."""

__version__ = "0.1.0"
