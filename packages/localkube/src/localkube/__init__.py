"""Runs Kubernetes on one machine. The kubelet runs pods as local processes."""

__version__ = "0.2.0"
