"""The seam between the kubelet and processes: what runs a pod, and connections into it."""
