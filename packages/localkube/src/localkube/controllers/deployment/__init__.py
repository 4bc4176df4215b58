"""The Deployment controller, as in kube-controller-manager (Kubernetes 1.36).

`controller.py` observes and acts; `deploymentcontrol.py` decides: which ReplicaSet is the new one (`history.py`), how
many pods each has next (`sizes.py`), and what the status says (`progress.py`).
"""
