"""The kinds that every Kubernetes API server has, as far as this one serves them."""

from localkube.apiserver.builtin.registry import kinds

__all__ = ["kinds"]
