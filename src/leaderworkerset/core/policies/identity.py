"""Identity: size of the group, index and key of group and worker, as labels and annotations of every pod.

Templates carry the size (R-LSTS-4); leaders get index and key of their group (R-ADM-4 to R-ADM-6), workers their index
within it (R-ADM-10).
"""

import hashlib
from typing import Final

from kuberuntime.objects import meta, ordinals
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.core.denial import DeniedError
from leaderworkerset.core.policies.edits import with_labels
from leaderworkerset.core.policies.policy import Member, Policy, Template


def group_hash(*parts: str) -> str:
    """Return the key that all pods of one group, or one subgroup, share.

    >>> group_hash("default", "test-sample")
    '95e88034e460983f51a9952fe128729fbc0663b5'
    """
    return hashlib.sha1("/".join(parts).encode(), usedforsecurity=False).hexdigest()


def annotations(template: Template) -> dict[str, str]:
    """Return the size of the group."""
    return {labels.SIZE: str(template.spec.size)}


def admit(pod: JSONObject, member: Member) -> JSONObject:
    """Return the pod with its own labels; what workers share with their leader is in their template."""
    if not member.is_leader:
        return with_labels(pod, {labels.WORKER_INDEX: str(member.worker_index)})
    own = meta.labels(pod)
    group_index = own[labels.GROUP_INDEX] if labels.GROUP_INDEX in own else str(ordinal(pod))
    group_key = own.get(labels.GROUP_KEY, group_hash(meta.namespace(pod), meta.name(pod)))
    return with_labels(pod, {labels.GROUP_INDEX: group_index, labels.GROUP_KEY: group_key})


def ordinal(pod: JSONObject) -> int:
    """Return the number at the end of the pod's name; deny a pod without one."""
    parts = ordinals.split(meta.name(pod))
    if parts is None:
        raise DeniedError(f"parsing pod ordinal for pod {meta.name(pod)}")
    return parts.number


POLICY: Final = Policy(annotations=annotations, admit=admit)
