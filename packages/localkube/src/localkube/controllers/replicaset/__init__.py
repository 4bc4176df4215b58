"""The ReplicaSet controller, as in kube-controller-manager (Kubernetes 1.36).

`replicasets.py` observes and acts; `replicacontrol.py` decides on pods, which of them go first, and the status.
"""
