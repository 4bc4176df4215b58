"""Defines a situation on a real node, and the expected output in each sample."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from tests.node.objects import RESOURCES, WAIT, container, leaderworkerset, pod

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject

STARTING: Final = frozenset({"LWS-E091", "LWS-E092", "LWS-E101", "LWS-E109"})
"""The causes that are permitted before a situation becomes visible."""

AS_DESIRED: Final = frozenset({"healthy", "complete"})
STUCK: Final = frozenset({"stuck"})
CRASHING: Final = frozenset({"crashing", "progressing"})
"""The statuses of a container that exits. The first failure is reported as progress."""
RECREATED: Final = frozenset({"LWS-E080", "LWS-E081"})
AWAITS: Final = "next attempt"
"""The strings that are expected for a failed group that has not been recreated."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A LeaderWorkerSet in a separate namespace, with related objects."""

    template: JSONObject
    """The pod template of all ranks."""

    codes: frozenset[str]
    """The causes that are permitted after the situation is visible."""

    words: tuple[str, ...] = ()
    """The strings that are expected in each sample with such a cause."""

    verdicts: frozenset[str] = STUCK

    advice: tuple[str, ...] = ()
    """Additional strings that are expected unless the group was just recreated and its next attempt is pending."""

    printed: str = ""
    """The container output that is quoted only by the diagnosis of this LeaderWorkerSet, which reads logs."""

    never: tuple[str, ...] = ()
    """Strings that no diagnosis may contain."""

    replicas: int = 1
    size: int = 2
    objects: tuple[JSONObject, ...] = ()
    """Objects that are created first, including cluster-scoped objects. They are deleted after the test."""

    then: tuple[tuple[str, ...], ...] = ()
    """The kubectl commands that run after the LeaderWorkerSet is available."""

    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The labels of the namespace."""

    before: frozenset[str] = STARTING
    """Additional causes that are permitted before the situation becomes visible."""

    keeps_running: bool = False
    """Whether the pods of the situation run, so that the LeaderWorkerSet is always available."""

    unexplained: str = ""
    """The description of a recreation for which the kubelet has not yet written the reason."""

    gives_up: bool = True
    """Whether `lws wait --fail-fast` fails before the timeout."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A diagnosis at one time. It counts as available if the status was available before and after it."""

    seconds: float
    verdict: str
    code: str
    text: str
    is_available: bool


def sample(seconds: float, item: JSONObject, *statuses: JSONObject) -> Sample:
    """Return a sample from a JSON diagnosis, and from the LeaderWorkerSet before and after the diagnosis."""
    available = all(meta.is_condition_true(obj, "Available") for obj in statuses)
    return Sample(seconds, item["verdict"], item["code"] or "", text_of(item), available)


def text_of(item: JSONObject) -> str:
    """Return the message in a JSON diagnosis."""
    return "\n".join([item["sentence"], *item["evidence"], *item["nextSteps"]])


def errors(situation: Situation, samples: Sequence[Sample]) -> list[str]:
    """Return descriptions of incorrect samples in order of time.

    Before the situation shows itself, the set may be healthy. Afterwards it must have one of the causes at any moment.

    >>> crash = Situation({}, frozenset({"E1"}), ("exit code 5",), CRASHING)
    >>> right = Sample(2, "crashing", "E1", "exit code 5", False)
    >>> errors(crash, [Sample(1, "healthy", "", "", True), right])
    []
    >>> errors(crash, [right, Sample(3, "healthy", "", "", True)])[0]
    "3 s: healthy, no cause: ''"
    """
    shown = next((index for index, one in enumerate(samples) if one.code in situation.codes), None)
    if shown is None:
        last = samples[-1] if samples else None
        return [f"never {sorted(situation.codes)}, at last {last}"]
    early = [one for one in samples[:shown] if one.code not in situation.before and one.verdict not in AS_DESIRED]
    wrong = [one for one in samples[shown:] if not is_right(situation, one)]
    forbidden = [one for one in samples for word in situation.never if word in one.text]
    return [describe(one) for one in [*early, *wrong, *forbidden]]


def is_right(situation: Situation, one: Sample) -> bool:
    """Return whether a sample is not available, and contains the cause and its strings."""
    if one.code not in situation.codes or one.verdict not in situation.verdicts:
        return False
    # A recreated group is available until its process fails. A group that is delayed by the back-off is not
    # available.
    may_be_available = situation.keeps_running or (one.verdict in CRASHING and AWAITS not in one.text)
    words = situation.words if one.code in RECREATED else (*situation.words, *situation.advice)
    if one.code in RECREATED and situation.unexplained and situation.unexplained in one.text:
        words = ()
    return (may_be_available or not one.is_available) and all(word in one.text for word in words)


def describe(one: Sample) -> str:
    """Return the description of an incorrect sample."""
    available = ", Available" if one.is_available and one.verdict not in AS_DESIRED else ""
    return f"{one.seconds:.0f} s: {one.verdict}, {one.code or 'no cause'}{available}: {one.text!r}"


def codes(*numbers: int) -> frozenset[str]:
    """Return the cause codes.

    >>> codes(70)
    frozenset({'LWS-E070'})
    """
    return frozenset(f"LWS-E{number:03}" for number in numbers)


def main(script: str = WAIT, **fields: Any) -> JSONObject:
    """Return a pod template with one container that runs a script."""
    return pod(container(script, **fields))


def of_rank_1(script: str) -> str:
    """Return a script that only rank 1 runs before it waits."""
    return f'if [ "$LWS_WORKER_INDEX" = 1 ]; then {script}; fi; {WAIT}'


def asking(**amounts: str) -> JSONObject:
    """Return a pod template whose container requests additional resources. `_` represents `-`."""
    named = {name.replace("_", "-"): amount for name, amount in amounts.items()}
    return main(resources={kind: {**RESOURCES[kind], **named} for kind in ("requests", "limits")})


def sets(table: Mapping[str, Situation]) -> Iterator[tuple[str, JSONObject]]:
    """Yield the name and the LeaderWorkerSet of each situation."""
    for name, one in table.items():
        obj = leaderworkerset(name, one.template, replicas=one.replicas, size=one.size)
        yield name, {**obj, "metadata": {**obj["metadata"], "labels": {LABEL: "true"}}}


LABEL: Final = "situation"
