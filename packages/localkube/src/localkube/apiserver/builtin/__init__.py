"""Defines the built-in kinds of Kubernetes that this API server serves."""

from localkube.apiserver.builtin.registry import kinds

__all__ = ["kinds"]
