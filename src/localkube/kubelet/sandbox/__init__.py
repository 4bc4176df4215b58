"""Pods on one machine: Linux namespaces, or plain processes if those are refused."""

from localkube.kubelet.sandbox.sandboxrunner import create_runner

__all__ = ["create_runner"]
