"""Parses storms from arguments, a document or a seed. Errors contain the step and the field. Pure."""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final, assert_never

import click
from msgspec import Struct

from kuberuntime.objects.meta import JSON
from lwsctl.cli import sharedoptions
from lwsctl.cli.errors import UsageError
from lwsctl.cli.faultnames import FAULTS, Amount, FaultName, FaultTarget
from lwsctl.cli.suggestions import hint

USUAL_SECONDS: Final = 10.0
MOST_STEPS: Final = 1000

FIELDS: Final = frozenset({"at", "fault", "targets", "for", "amount", "path"})
NUMBER: Final = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)(%|k|M|G|)")
UNITS: Final = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}

CALM: Final = (3.0, 8.0)
"""The minimum and maximum time in seconds between faults of a random storm."""

LASTING: Final = (2.0, 10.0)
"""The minimum and maximum duration in seconds of a fault of a random storm."""

DRAWN: Final = tuple(fault for fault in FAULTS.values() if fault.of is not FaultTarget.NODE and fault.name != "delay")
"""The faults of random storms, which all local clusters support.

These clusters may have only one node, and some kernels cannot delay packets.
"""


class Step(Struct, frozen=True, kw_only=True):
    """A fault that starts `at` seconds after the storm, and its duration.

    Targets are ranks or a node, as specified by the user.
    """

    at: float
    fault: FaultName
    targets: tuple[str, ...]
    seconds: float
    amount: float = 0.0
    path: str = ""
    words: str = ""
    """The amount or path as specified by the user, for reports."""

    def __str__(self) -> str:
        lasting = "" if self.fault.is_instantaneous else f" for {self.seconds:g} s"
        return " ".join(filter(None, (self.fault.name, *self.targets, self.words))) + lasting


def build_step(at: float, name: str, targets: Sequence[str], seconds: float, value: str = "") -> Step:
    """Return a step. `value` is the amount or path as specified, or an empty string for the default.

    Raise `UsageError` if a value is invalid.

    >>> str(build_step(0.0, "lose", ["web/0/0", "web/0/1"], 5.0, "30%"))
    'lose web/0/0 web/0/1 30% for 5 s'
    """
    fault = FAULTS.get(name)
    if fault is None:
        raise UsageError(f"unknown fault {name!r}; supported faults: {', '.join(FAULTS)}{hint(name, FAULTS)}")
    if len(targets) not in fault.of.numbers:
        raise UsageError(f"{name} expects {fault.of.words}, but {len(targets)} were specified")
    if value and not fault.usual:
        raise UsageError(f"{name} does not support an amount or a path; remove {value!r}")
    words = value or fault.usual
    if fault.has_path and not words.startswith("/"):
        raise UsageError(f"{name}: path: {words!r}: must start with /")
    return Step(
        at=at,
        fault=fault,
        targets=tuple(targets),
        seconds=0.0 if fault.is_instantaneous else seconds,
        amount=0.0 if fault.has_path else parse_amount(fault, words),
        path=words if fault.has_path else "",
        words=words,
    )


def parse_amount(fault: FaultName, argument: str) -> float:
    """Return the amount as a number.

    >>> parse_amount(FAULTS["lose"], "30%"), parse_amount(FAULTS["throttle"], "1.5M"), parse_amount(FAULTS["delay"], "50ms")
    (0.3, 1500000.0, 0.05)
    """
    amount_match = NUMBER.fullmatch(argument)
    match fault.amount:
        case Amount.NONE:
            return 0.0
        case Amount.DURATION:
            return _duration(fault.name, "amount", argument)
        case Amount.SHARE:
            if amount_match and amount_match[2] == "%" and 0 < float(amount_match[1]) <= 100:
                return float(amount_match[1]) / 100
            raise UsageError(f"{fault.name}: amount: {argument!r}: use a percentage, such as 30%")
        case Amount.RATE:
            if amount_match and amount_match[2] in UNITS:
                return float(amount_match[1]) * UNITS[amount_match[2]]
            raise UsageError(f"{fault.name}: amount: {argument!r}: use bytes per second, such as 100k or 2M")
        case _:
            assert_never(fault.amount)


def parse(document: JSON, place: str) -> list[Step]:
    """Return the steps in a storm document, sorted by time."""
    steps = document.get("steps") if isinstance(document, dict) else None
    if not isinstance(steps, list) or not steps or set(document) != {"steps"}:
        raise UsageError(f"{place}: must contain only `steps`, a list of faults")
    if len(steps) > MOST_STEPS:
        raise UsageError(f"{place}: steps: Too many: {len(steps)}: must have at most {MOST_STEPS} items")
    return sorted(
        (_read_step(item, f"{place}: steps[{index}]") for index, item in enumerate(steps)), key=lambda step: step.at
    )


def draw(seed: int, seconds: float, ranks: Sequence[str]) -> list[Step]:
    """Return a random storm of `seconds` on these ranks. The same seed and ranks result in the same storm."""
    random = Random(seed)  # noqa: S311 - a storm is no secret
    steps: list[Step] = []
    at = 0.0
    while True:
        at += random.uniform(*CALM)
        lasting = min(round(random.uniform(*LASTING), 1), seconds - at)
        if lasting < LASTING[0]:
            return steps
        faults = [fault for fault in DRAWN if fault.of is FaultTarget.PART or len(ranks) >= max(fault.of.numbers)]
        fault = random.choice(faults)
        targets = random.sample(ranks, max(fault.of.numbers))
        steps.append(build_step(round(at, 1), fault.name, targets, lasting))
        at += lasting


def _read_step(item: JSON, place: str) -> Step:
    if not isinstance(item, dict) or not set(item) <= FIELDS:
        unknown = ", ".join(sorted(set(item) - FIELDS)) if isinstance(item, dict) else item
        raise UsageError(f"{place}: {unknown!r} is not valid; use the fields {', '.join(sorted(FIELDS))}")
    targets = item.get("targets") or []
    if not isinstance(targets, list) or not all(isinstance(target, str) for target in targets):
        raise UsageError(f"{place}: targets: {targets!r}: use a list of ranks or nodes, such as [web/0/1]")
    value = item.get("amount") or item.get("path") or ""
    lasting = _duration(place, "for", _read_text(item, "for") or f"{USUAL_SECONDS:g}")
    try:
        return build_step(
            _duration(place, "at", _read_text(item, "at") or "0"),
            _read_text(item, "fault"),
            list(map(str, targets)),
            lasting,
            str(value),
        )
    except UsageError as error:
        raise UsageError(error.args[0] if str(error).startswith(place) else f"{place}: {error}") from error


def _read_text(item: Mapping[str, Any], name: str) -> str:
    value = item.get(name)
    return "" if value is None else str(value)


def _duration(place: str, name: str, argument: str) -> float:
    try:
        return sharedoptions.limit(argument)
    except click.BadParameter as error:
        raise UsageError(f"{place}: {name}: {error.message}") from error
