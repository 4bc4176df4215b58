"""Defines the interface between the kubelet and processes: the process runner, and connections to pods."""
