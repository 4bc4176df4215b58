"""Implements the PodDisruptionBudget controller, which counts healthy pods and remaining evictions.

Mirrors `disruption.go` of kube-controller-manager, without its events.
"""
