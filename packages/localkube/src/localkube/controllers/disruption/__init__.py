"""The controller of PodDisruptionBudgets: counts the healthy pods of each, and the evictions that are left.

Mirrors `disruption.go` of kube-controller-manager, without its events.
"""
