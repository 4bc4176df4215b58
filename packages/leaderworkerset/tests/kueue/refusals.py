"""Validates a LeaderWorkerSet in a queue on creation and update, as Kueue does (R-KQ-15, R-KQ-55)."""

from typing import Final

from kuberuntime.objects import meta, names
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.core.policies.policy import DeniedError

PREFIX: Final = "kueue.x-k8s.io/"
ELASTIC: Final = PREFIX + "elastic-job"
REQUIRED: Final = PREFIX + "podset-required-topology"
PREFERRED: Final = PREFIX + "podset-preferred-topology"
UNCONSTRAINED: Final = PREFIX + "podset-unconstrained-topology"
TOGETHER: Final = PREFIX + "podset-group-name"
SLICE_TOPOLOGY: Final = PREFIX + "podset-slice-required-topology"
SLICE_SIZE: Final = PREFIX + "podset-slice-size"

MOST_GROUPS: Final = 1_000_000
TEMPLATES: Final = ("leaderTemplate", "workerTemplate")


def check(lws: JSONObject, queue: str) -> None:
    """Raise `DeniedError` for a LeaderWorkerSet that can never be admitted."""
    template = meta.spec(lws)["leaderWorkerTemplate"]
    if names.dns_1123_subdomain(queue):
        raise DeniedError(f"metadata.labels[queue-name]: Invalid value: {queue!r}: must be a DNS subdomain")
    if ELASTIC in meta.annotations(lws):
        raise DeniedError(f"metadata.annotations[{ELASTIC}]: Forbidden: elastic jobs are not supported")
    if int(meta.spec(lws)["replicas"]) > MOST_GROUPS:
        raise DeniedError(f"spec.replicas: Invalid value: should be less than or equal to {MOST_GROUPS}")
    size, found = int(template["size"]), {name: template[name] for name in TEMPLATES if template.get(name)}
    counts = {"leaderTemplate": 1, "workerTemplate": size - 1} if len(found) > 1 else {"workerTemplate": size}
    for name, one in found.items():
        _check_topology(f"spec.leaderWorkerTemplate.{name}", meta.annotations(one), counts[name])
    _check_together([meta.annotations(one) for one in found.values()], list(counts.values()))


def _check_topology(path: str, annotations: dict[str, str], count: int) -> None:
    asked = [key for key in (REQUIRED, PREFERRED, UNCONSTRAINED) if key in annotations]
    if len(asked) > 1:
        raise DeniedError(f"{path}: Invalid value: must not contain more than one topology annotation: {asked}")
    if (SLICE_TOPOLOGY in annotations) != (SLICE_SIZE in annotations):
        raise DeniedError(f"{path}: Required value: slice size and slice topology go together")
    if SLICE_SIZE in annotations and not 1 <= int(annotations[SLICE_SIZE]) <= count:
        raise DeniedError(f"{path}: Invalid value: slice size must be at most the {count} pods of its pod set")


def _check_together(templates: list[dict[str, str]], counts: list[int]) -> None:
    """Check pod sets that require the same domain."""
    grouped = [one for one in templates if TOGETHER in one]
    if not grouped:
        return
    if any(REQUIRED not in one and PREFERRED not in one for one in grouped):
        raise DeniedError(f"{TOGETHER}: Forbidden: only with a required or preferred topology")
    if len(grouped) != 2 or 1 not in counts:
        raise DeniedError(f"{TOGETHER}: Invalid value: two pod sets, and one of them of one pod")
    if len({one.get(REQUIRED, one.get(PREFERRED)) for one in grouped}) > 1:
        raise DeniedError(f"{TOGETHER}: Invalid value: both pod sets need the same topology")
