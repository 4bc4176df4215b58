"""Tests `lws explain` for DisaggregatedSets on both clusters.

Each fault is really created, and explain reports its code.
"""

import asyncio
from functools import partial
from typing import Final

import pytest
from tests.disaggregated import disaggregatedset_object, role
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State
from tests.integration.lwsctl.explanations import ASKED_AGAIN, NAMED_WITHIN, follow, remedy, unreachable_webhook, warned
from tests.integration.lwsctl.test_commands import session_of

from kuberuntime import timeouts
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import SERVICES
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS, ROLE_SCALERS
from lwsctl.cli.commands import get
from lwsctl.cli.sets import shown
from lwsctl.cli.sets.diagnoses import explain, survey
from lwsctl.cli.targets import parse
from lwsctl.diagnosis.diagnose import worst
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.health import AS_DESIRED, CALM, Verdict
from lwsctl.observation.lists import Lists

EXTERNAL: Final = {"scaling": {"mode": "External"}}


async def create(space: LiveScenario, roles: list[JSONObject]) -> None:
    await space.create(disaggregatedset_object(roles) | {"metadata": {"name": "split"}}, DISAGGREGATED_SETS)


async def told(space: LiveScenario, code: str) -> Diagnosis:
    """Wait until `lws explain` reports the code for the DisaggregatedSet and in the list of all objects."""
    session = session_of(space)
    async with timeouts.within(NAMED_WITHIN):
        while (found := worst(await explain(session, parse("split")))).code != code:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(ASKED_AGAIN)
    everything = await survey(session, space.namespace)
    assert (everything[0].code, everything[0].owner) == (code, "split"), everything
    return found


async def healthy(space: LiveScenario) -> None:
    """Wait until the DisaggregatedSet is healthy."""
    async with timeouts.within(NAMED_WITHIN * 4):
        while worst(await explain(session_of(space), parse("split"))).verdict is not Verdict.HEALTHY:  # noqa: ASYNC110
            await asyncio.sleep(ASKED_AGAIN)


@remedy("LWS-E016")
async def test_explain_names_a_scaler_of_a_different_owner(
    space: LiveScenario, capsys: pytest.CaptureFixture[str], code: str
) -> None:
    scaler = {
        "apiVersion": ROLE_SCALERS.api_version,
        "kind": ROLE_SCALERS.kind,
        "metadata": {"name": "split-decode"},
        "spec": {"replicas": 1},
    }
    await space.create(scaler, ROLE_SCALERS)
    await create(space, [role("prefill", 1), role("decode", 1) | EXTERNAL])
    await space.until(warned("has a different owner"))
    found = await told(space, code)
    assert (found.target, found.verdict) == ("split", Verdict.STUCK)
    line = f"split is stuck (LWS-E016): the scaler of a role belongs to another owner; use `lws -n {space.namespace} explain split`"
    capsys.readouterr()
    session = session_of(space)
    wanted = shown.GetRequest((parse("split"),), None, everywhere=False, selector="", managed_fields=False)
    lists = Lists(session.client)
    await get.print_causes(session, lists, await shown.observe(session, wanted, lists), wanted)
    assert f"{line} for details" in capsys.readouterr().err.splitlines()
    await follow(space, found, "if it is not needed")
    await healthy(space)


@remedy("LWS-E017")
async def test_explain_names_a_part_that_the_server_rejects(space: LiveScenario, code: str) -> None:
    async with unreachable_webhook(space, LEADERWORKERSETS):
        await create(space, [role("prefill", 1), role("decode", 1)])
        await space.until(warned("unreachable.example.com"))
        found = await told(space, code)
    assert found.sentence.startswith("LeaderWorkerSet split-0-")
    assert "cannot be created" in found.sentence
    assert "unreachable.example.com" in found.sentence
    await healthy(space)


async def test_explain_reports_a_finished_set_as_healthy(space: LiveScenario) -> None:
    await create(space, [role("prefill", 1), role("decode", 1)])
    async with timeouts.within(NAMED_WITHIN * 4):
        while worst(found := await explain(session_of(space), parse("split"))).verdict is not Verdict.HEALTHY:
            assert {diagnosis.verdict for diagnosis in found} <= CALM | AS_DESIRED, found
            await asyncio.sleep(ASKED_AGAIN)
    assert len(found) == 2


async def test_set_with_a_failing_reconcile_is_not_available(space: LiveScenario) -> None:
    """A Service of a different owner has the name of a role's Service. LWS-E017 contains both names."""
    await create(space, [role("prefill", 1), role("decode", 1)])
    services = (await space.until(_has_services)).services
    name = min(service for service in services if service.endswith("-prv"))
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "other", "uid": "1234", "controller": True}
    await space.patch({"metadata": {"ownerReferences": [thing]}}, name, resource=SERVICES)
    await space.eventually(partial(space.get, DISAGGREGATED_SETS, "split"), _is_failing)
    found = await told(space, "LWS-E017")
    assert "Thing other" in found.sentence
    assert name in found.sentence
    await space.delete(name, SERVICES)
    await space.eventually(partial(space.get, DISAGGREGATED_SETS, "split"), _is_available)


def _has_services(state: State) -> None:
    assert sum(name.endswith("-prv") for name in state.services) == 2


def _is_failing(obj: JSONObject) -> bool:
    condition = meta.find_condition(obj, "Progressing") or {}
    is_failing = condition.get("status") == "True" and condition.get("reason") == "ReconcileFailed"
    return is_failing and not _is_available(obj)


def _is_available(obj: JSONObject) -> bool:
    return meta.is_condition_true(obj, "Available")
