"""The StatefulSet controller, as kube-controller-manager has it (Kubernetes 1.36, gate MaxUnavailableStatefulSet off).

`controller.py` observes and acts; `plan.py` decides on pods, `status.py` counts them, `revisions.py` keeps the history
of templates, `claims.py` the volume claims, `identity.py` knows who a pod is.
"""
