"""Kubernetes on one machine: API server, controllers, scheduler and kubelet that run manifests as local processes."""

__version__ = "0.2.0"
