"""The StatefulSet controller, as in kube-controller-manager (Kubernetes 1.36, gate MaxUnavailableStatefulSet off).

`controller.py` observes. `setcontrol.py` decides about pods, `status.py` counts pods, `revisions.py` maintains the
history of templates, `podclaims.py` manages volume claims, and `identity.py` the names and labels of pods.
"""
