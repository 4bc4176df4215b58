"""The controller of PodDisruptionBudgets: how many healthy pods each has, and how many evictions are left.

Mirrors `disruption.go` of kube-controller-manager, without its events.
"""
