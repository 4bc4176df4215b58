"""Pods on one machine: Linux namespaces, or plain processes if those are refused."""
