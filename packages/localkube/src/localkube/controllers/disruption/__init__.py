"""The PodDisruptionBudget controller, which counts the healthy pods and the remaining evictions of each budget.

Mirrors `disruption.go` of kube-controller-manager, without its events.
"""
