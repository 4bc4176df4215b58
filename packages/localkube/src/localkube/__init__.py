"""Kubernetes on one machine, whose kubelet runs pods as local processes."""

__version__ = "0.2.0"
