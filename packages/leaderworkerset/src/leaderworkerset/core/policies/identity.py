"""Identity: size of the group, index and key of group and worker, as labels and annotations of every pod.

Templates carry the size (R-LSTS-4); leaders get index and key of their group (R-ADM-4 to R-ADM-6), workers their index
within it (R-ADM-10). With `groupIdentity: Hash` the key is random. It is also the index, and the source of the leader's
host name (N-ADM-1 to N-ADM-3), since the pod has no name yet.
"""

import hashlib
from typing import Final

from kuberuntime.objects import meta, ordinals
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.core.policies.edits import with_labels, with_spec
from leaderworkerset.core.policies.policy import DeniedError, Member, Policy, Template


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
    """Return the pod with its own labels; labels that workers share with their leader are in their template."""
    if not member.is_leader:
        return with_labels(pod, {labels.WORKER_INDEX: str(member.worker_index)})
    own = meta.labels(pod)
    if groupname.is_hash(pod):
        return _admit_hash(pod, own, member)
    group_index = own[labels.GROUP_INDEX] if labels.GROUP_INDEX in own else str(ordinal(pod))
    group_key = own.get(labels.GROUP_KEY, group_hash(meta.namespace(pod), meta.name(pod)))
    return with_labels(pod, {labels.GROUP_INDEX: group_index, labels.GROUP_KEY: group_key})


def _admit_hash(pod: JSONObject, own: dict[str, str], member: Member) -> JSONObject:
    """Return the leader with a random key; a leader that was admitted already keeps its key."""
    key = own.get(labels.GROUP_KEY, "")
    if not key or own.get(labels.GROUP_INDEX) != key:
        key = group_hash(meta.namespace(pod), member.request)
    labelled = with_labels(pod, {labels.GROUP_INDEX: key, labels.GROUP_KEY: key})
    if meta.spec(pod).get("hostname"):
        return labelled
    return with_spec(labelled, {"hostname": f"{own[labels.NAME]}-{key[: groupname.HOST_CHARACTERS]}"})


def ordinal(pod: JSONObject) -> int:
    """Return the number at the end of the pod's name; deny a pod without one."""
    parts = ordinals.split(meta.name(pod))
    if parts is None:
        raise DeniedError(f"parsing pod ordinal for pod {meta.name(pod)}")
    return parts.number


POLICY: Final = Policy(annotations=annotations, admit=admit)
