"""Implements the ReplicaSet controller, as in kube-controller-manager (Kubernetes 1.36).

`controller.py` observes. `replicacontrol.py` decides which pods to create and delete, in which order, and the status.
"""
