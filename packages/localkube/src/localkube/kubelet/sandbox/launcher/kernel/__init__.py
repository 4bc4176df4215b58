"""Implements the launcher's interface to the kernel: system calls, namespaces, mounts and the network."""
