"""Reads the parts of a pod spec that the kubelet uses, without I/O."""
