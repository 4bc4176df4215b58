"""Pods on one machine: Linux namespaces, or plain processes where those are refused."""

from localkube.kubelet.sandbox.create import create_runner

__all__ = ["create_runner"]
