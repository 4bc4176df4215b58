"""The StatefulSet controller, as in kube-controller-manager (Kubernetes 1.36, gate MaxUnavailableStatefulSet off).

`controller.py` observes and acts; `setcontrol.py` decides about pods, `status.py` counts them, `revisions.py` keeps the
history of templates, `podclaims.py` the volume claims, `identity.py` the names and labels of pods.
"""
