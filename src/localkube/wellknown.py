"""Names of the small Kubernetes in objects: its domain for labels, annotations and provisioners, and former names.

`localkube.internal` cannot belong to anybody else: `.internal` is reserved for private use. State directories keep the
objects of earlier versions, so the names they used are still read, and never written.
"""

from typing import Final

DOMAIN: Final = "localkube.internal"
FORMER_DOMAIN: Final = "embedded.leaderworkerset.x-k8s.io"

SIMULATED: Final = f"{DOMAIN}/simulated"
"""The label of the nodes made here; those without are ignored."""

FORMER_SIMULATED: Final = f"{FORMER_DOMAIN}/simulated"

PROVISIONER: Final = f"{DOMAIN}/directory"
"""The provisioner of volumes that are directories of this machine."""

PROVISIONERS: Final = (PROVISIONER, f"{FORMER_DOMAIN}/directory")
"""The provisioner, and what it was called before."""

DEFAULT_CLASS_NAME: Final = "standard"
"""The storage class that every cluster begins with, for claims that name none."""

HOLD_COMPLETED: Final = f"{DOMAIN}/hold-completed"
"""Annotation of a pod (value `true`): its containers that end with exit code 0 stay ended, although their policy says
Always. Pods of StatefulSets cannot say OnFailure, and programs that come to an end have to be seen at theirs."""

FORMER_HOLD_COMPLETED: Final = f"{FORMER_DOMAIN}/hold-completed"
