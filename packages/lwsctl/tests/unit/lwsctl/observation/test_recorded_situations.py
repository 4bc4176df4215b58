"""Tests that situations recorded on real nodes result in the same diagnosis.

`tests/node/situations/recording.py` renews them.
"""

import json
import lzma
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest
from testkit.fakeclock import FakeClock
from testkit.virtualtime import run

from kuberuntime.client.requests import Selection as Query
from kuberuntime.errors import ForbiddenError
from kuberuntime.objects import meta, selectors
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.labels import NAME
from lwsctl.diagnosis.observed import Commands
from lwsctl.model import leaderworkerset as sets
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.observation.diagnosisinput import diagnose_one
from lwsctl.views.selection import Selection

ARCHIVE: Final = Path(__file__).parents[3] / "vectors" / "situations.json.xz"
RECORDED: Final = {one["name"]: one for one in json.loads(lzma.decompress(ARCHIVE.read_bytes()))}


class RecordedLists:
    """Responds with recorded lists. Lists that were not recorded are forbidden."""

    def __init__(self, lists: dict[str, list[JSONObject]]) -> None:
        self._lists = lists

    async def all(self, query: Query) -> Sequence[JSONObject]:
        kind = query.resource.plural
        if kind not in self._lists:
            raise ForbiddenError({"code": 403, "message": f"{kind} were not recorded"})
        labels, fields = selectors.parse_labels(query.label_selector), selectors.parse_fields(query.field_selector)
        return [
            obj | {"kind": query.resource.kind}  # the items of a list do not have a kind
            for obj in self._lists[kind]
            if labels.matches(meta.labels(obj))
            and all((selectors.field_text(obj, term.path) == term.value) == term.is_equality for term in fields)
        ]

    async def list_bounded(self, query: Query) -> Sequence[JSONObject]:
        return await self.all(query)

    async def node(self, name: str) -> JSONObject | None:
        return next((node for node in self._lists["nodes"] if meta.name(node) == name), None)


def replayed(situation: dict[str, Any]) -> Diagnosis:
    """Return the diagnosis of a situation at the time of its recording."""
    obj, lists = situation["object"], situation["lists"]
    pods = [pod | {"kind": "Pod"} for pod in lists["pods"] if meta.labels(pod).get(NAME) == meta.name(obj)]
    clock = FakeClock(datetime.fromisoformat(situation["time"]))
    selection = Selection(meta.name(obj))
    return run(diagnose_one(RecordedLists(lists), sets.view(obj, pods), selection, Commands(), clock))


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_situation_has_its_cause(name: str) -> None:
    situation = RECORDED[name]
    found = replayed(situation)
    text = "\n".join((found.sentence, *found.evidence, *found.steps))
    assert found.code in situation["codes"], text
    assert found.verdict in situation["verdicts"], text
    assert [word for word in situation["words"] if word not in text] == []
    assert [word for word in situation["never"] if word in text] == []
