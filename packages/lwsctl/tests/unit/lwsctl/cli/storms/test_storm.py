"""Tests fault storms that are defined by arguments, a document, or a seed."""

import itertools
from typing import Any

import pytest

from localkube.faults.fault import FORMS, FaultKind
from lwsctl.cli.errors import UsageError
from lwsctl.cli.faultnames import FAULTS, FaultTarget
from lwsctl.cli.storms import storm

RANKS = ("web/0/0", "web/0/1", "web/1/0", "web/1/1")


def test_fault_table_has_every_kind_with_targets_and_amounts() -> None:
    assert list(FAULTS) == [str(kind) for kind in FaultKind]
    for kind, form in FORMS.items():
        name = FAULTS[kind]
        wanted = {
            FaultTarget.RANK: (1, 1, True),
            FaultTarget.RANKS: (1, 2, True),
            FaultTarget.NODE: (1, 1, False),
            FaultTarget.PART: (0, 0, True),
        }
        assert (form.fewest, form.most, form.targets_pods) == wanted[name.of]
        assert form.has_path == name.has_path
        if form.amounts:
            assert form.amounts[0] <= storm.parse_amount(name, name.usual) <= form.amounts[1]


def test_document_gives_steps_in_order_of_time() -> None:
    document = {
        "steps": [
            {"at": "10s", "fault": "lose", "targets": ["web/0/0", "web/0/1"], "amount": "30%", "for": "20s"},
            {"fault": "kill", "targets": ["web/0/1"]},
            {"at": 5, "fault": "fill", "targets": ["web/0/1"], "path": "/dev/shm"},
            {"at": "5s", "fault": "manager", "for": 3},
        ]
    }
    assert [(one.at, str(one)) for one in storm.parse(document, "storm.yaml")] == [
        (0.0, "kill web/0/1"),
        (5.0, "fill web/0/1 /dev/shm for 10 s"),
        (5.0, "manager for 3 s"),
        (10.0, "lose web/0/0 web/0/1 30% for 20 s"),
    ]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (None, "s.yaml: must contain only `steps`, a list of faults"),
        ({"steps": []}, "s.yaml: must contain only `steps`"),
        ({"steps": [{}], "seed": 1}, "s.yaml: must contain only `steps`"),
        ({"steps": [{}] * 1001}, "s.yaml: steps: Too many: 1001: must have at most 1000 items"),
        ({"steps": ["kill"]}, "s.yaml: steps[0]: 'kill' is not valid; use the fields amount, at, fault"),
        ({"steps": [{"fault": "kill", "rank": "web/0/1"}]}, "s.yaml: steps[0]: 'rank' is not valid"),
        ({"steps": [{"fault": "kill", "targets": "web/0/1"}]}, "s.yaml: steps[0]: targets: 'web/0/1': use a list"),
        ({"steps": [{"fault": "kil"}]}, "unknown fault 'kil'; supported faults: kill, stop, starve"),
        ({"steps": [{"fault": "kill"}]}, "s.yaml: steps[0]: kill expects one rank (web/0/1), but 0 were specified"),
        ({"steps": [{"fault": "partition"}]}, "partition expects one or two ranks"),
        ({"steps": [{"fault": "drain"}]}, "drain expects one node (node-0), but 0"),
        ({"steps": [{"fault": "manager", "targets": ["a"]}]}, "manager expects no target, but 1"),
        ({"steps": [{"fault": "manager", "amount": 3}]}, "manager does not support an amount or a path; remove '3'"),
        (
            {"steps": [{"fault": "manager", "for": "long"}]},
            "s.yaml: steps[0]: for: 'long': use a duration such as 30s, 5m",
        ),
        ({"steps": [{"fault": "manager", "at": -1}]}, "s.yaml: steps[0]: at: '-1': must be between"),
        (
            {"steps": [{"fault": "lose", "targets": ["a"], "amount": "x"}]},
            "lose: amount: 'x': use a percentage, such as 30%",
        ),
        ({"steps": [{"fault": "lose", "targets": ["a"], "amount": "130%"}]}, "lose: amount: '130%': use a percentage"),
        ({"steps": [{"fault": "throttle", "targets": ["a"], "amount": "9%"}]}, "throttle: amount: '9%': use bytes"),
        (
            {"steps": [{"fault": "delay", "targets": ["a"], "amount": "x"}]},
            "delay: amount: 'x': use a duration such as 30s",
        ),
        ({"steps": [{"fault": "fill", "targets": ["a"], "path": "tmp"}]}, "fill: path: 'tmp': must start with /"),
    ],
    ids=range(20),
)
def test_invalid_document_error_names_the_field(document: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        storm.parse(document, "s.yaml")
    assert message in str(caught.value)
    assert str(caught.value).count("s.yaml") == 1


def test_seed_gives_the_same_storm_within_its_time() -> None:
    drawn = storm.draw(7, 300, RANKS)
    assert drawn == storm.draw(7, 300, RANKS) != storm.draw(8, 300, RANKS)
    assert len(drawn) > 20
    assert all(one.at + one.seconds <= 300 for one in drawn)
    assert all(before.at + before.seconds < after.at for before, after in itertools.pairwise(drawn))
    assert {target for one in drawn for target in one.targets} == set(RANKS)


def test_storm_without_ranks_draws_cluster_parts_only() -> None:
    assert {one.fault.of for one in storm.draw(1, 300, ())} == {FaultTarget.PART}
