"""The ReplicaSet controller, as in kube-controller-manager (Kubernetes 1.36).

`replicasets.py` observes and acts; `replicacontrol.py` decides about pods, the order of their deletion, and the status.
"""
