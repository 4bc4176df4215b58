"""Implements the Deployment controller, as in kube-controller-manager (Kubernetes 1.36).

`controller.py` observes. `deploymentcontrol.py` decides which ReplicaSet is the new one (`history.py`), the next sizes
of all ReplicaSets (`sizes.py`), and the content of the status (`progress.py`).
"""
