"""Tests that `lws explain` limits notes on Services to the explained sets, and reads failures once."""

import asyncio
from collections.abc import Sequence

import pytest
from tests import builders

from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.api import labels
from leaderworkerset.api.episode import Episode, Outcome
from lwsctl.cli.cluster import recordings
from lwsctl.cli.commands.explain import is_intended_for, relevant_episodes
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.health import Verdict
from lwsctl.views.selection import Selection

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "a"}]}}
SET = builders.leaderworkerset_object(template={"workerTemplate": TEMPLATE})


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({labels.NAME: "web"}, True),
        ({labels.NAME: "web", "role": "leadr"}, True),
        ({"app": "web", "role": "x"}, True),
        ({"app": "mail"}, False),
        ({labels.NAME: "other"}, False),
        ({}, False),
    ],
)
def test_service_matches_a_set_whose_label_it_selects(selector: dict[str, str], expected: bool) -> None:
    service = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": selector}}
    assert is_intended_for(service, SET) is expected


def test_explain_reads_recorded_episodes_once() -> None:
    episodes = [
        Episode(namespace="prod", lws="web", group=group, outcome=Outcome.FAILED, time="2026-01-01T12:00:00Z")
        for group in ("0", "1")
    ]
    requests: list[ObjectKey] = []

    async def read(key: ObjectKey) -> Sequence[Episode]:
        requests.append(key)
        return episodes

    async def explained() -> Sequence[Episode]:
        diagnosis = Diagnosis(target="web/1", namespace="prod", verdict=Verdict.CRASHING, sentence="")
        evidence = recordings.read_once(read)
        await evidence(ObjectKey("prod", "web"))
        return await relevant_episodes(Selection("web", 1), diagnosis, evidence)

    assert asyncio.run(explained()) == episodes[1:]
    assert requests == [ObjectKey("prod", "web")]
