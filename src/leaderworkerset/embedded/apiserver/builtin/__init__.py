"""The kinds that every Kubernetes API server has, as far as this one serves them."""

from leaderworkerset.embedded.apiserver.builtin.registry import kinds

__all__ = ["kinds"]
