"""Tests the results of `lws doctor` for pod admission."""

from typing import Any

import pytest

from leaderworkerset.core.admission import podpolicy
from lwsctl.cli.doctor import podadmissionchecks
from lwsctl.cli.doctor.findings import Level, UnreadableObject
from lwsctl.cli.doctor.podadmissionchecks import AdmissionFacts

INTACT = {kind.kind: obj for kind, obj in podpolicy.build()}
ABSENT = dict.fromkeys(INTACT)
EDITED = {kind: obj | {"spec": {}} for kind, obj in INTACT.items()}


@pytest.mark.parametrize(
    ("facts", "code", "level", "words"),
    [
        ({"objects": ABSENT}, "LWS-D312", Level.OK, "through the webhook"),
        ({"objects": INTACT}, "LWS-D316", Level.WARNING, "of a previous configuration exists"),
        ({"mode": "Auto", "objects": INTACT}, "LWS-D312", Level.OK, "through the policy"),
        ({"mode": "Policy", "objects": ABSENT}, "LWS-D314", Level.WARNING, "is missing"),
        ({"mode": "Auto", "objects": EDITED}, "LWS-D315", Level.ERROR, "was edited"),
        ({"mode": "Auto", "is_served": False}, "LWS-D313", Level.NOTE, "v1.36.1 does not serve these policies"),
        ({"mode": "Policy", "is_served": False}, "LWS-D313", Level.ERROR, "v1.36.1 does not serve these policies"),
        ({"mode": UnreadableObject("forbidden")}, "LWS-D311", Level.UNKNOWN, "forbidden"),
        (
            {"mode": "Auto", "objects": INTACT | {"X": UnreadableObject("forbidden")}},
            "LWS-D311",
            Level.UNKNOWN,
            "forbidden",
        ),
    ],
)
def test_pod_admission_is_reported(facts: dict[str, Any], code: str, level: Level, words: str) -> None:
    (result,) = podadmissionchecks.findings(AdmissionFacts(**{"is_served": True} | facts), "v1.36.1")
    assert (result.code, result.level) == (code, level)
    assert words in result.text
    assert bool(result.fix) is (level in {Level.WARNING, Level.ERROR, Level.UNKNOWN})
