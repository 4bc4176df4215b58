"""Implements the StatefulSet controller of Kubernetes 1.36, without the MaxUnavailableStatefulSet gate.

`controller.py` observes. `setcontrol.py` decides about pods, `status.py` counts pods, `revisions.py` maintains the
history of templates, `podclaims.py` manages volume claims, and `identity.py` the names and labels of pods.
"""
