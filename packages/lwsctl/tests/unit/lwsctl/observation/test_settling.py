"""Tests DisaggregatedSets in several namespaces. Lists are read once, and each set uses only its own objects."""

from collections.abc import Sequence

from testkit.fakeclock import FakeClock
from testkit.virtualtime import run
from tests.explanations.builders import NOW, conditions, event, of_set, part
from tests.unit.lwsctl.observation.test_setdiagnoses import Server, named

from kuberuntime.client.client import Client
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CORE_EVENTS, DEPLOYMENTS, LEASES, Resource
from leaderworkerset.api.resources import ROLE_SCALERS
from lwsctl.diagnosis.observed import Commands
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.disaggregatedset import SetView, set_view
from lwsctl.model.health import Verdict
from lwsctl.model.leaderworkerset import view
from lwsctl.observation import setdiagnoses
from lwsctl.observation.lists import Lists

PARTS = (part("prefill"), part("decode"))
DONE = {"conditions": conditions(Available="True")}
SCALER: JSONObject = {
    "kind": "DisaggregatedSetRoleScaler",
    "metadata": {"name": "web-decode", "namespace": "prod", "uid": "s"},
    "spec": {"replicas": 1},
}
REFUSAL = event(
    "DisaggregatedSet", "web", "FailedCreate", "Failed to create LeaderWorkerSet web-0-a-b: no", uid="whole"
)


def a_set(
    name: str = "web",
    namespace: str = "prod",
    parts: Sequence[JSONObject] = PARTS,
    status: JSONObject | None = None,
    generation: int = 1,
) -> SetView:
    """Return a DisaggregatedSet in the form that `lws get` reads. By default, it is progressing."""
    whole = of_set(status=status, metadata={"generation": generation}).set_view
    assert whole is not None
    return set_view(named(whole.object, name, namespace), [view(named(one, name, namespace), ()) for one in parts])


def told(server: Server, sets: Sequence[SetView], namespace: str = "") -> list[Diagnosis]:
    async def scenario() -> list[Diagnosis]:
        return await setdiagnoses.diagnose_sets(Lists(Client(server)), sets, namespace, Commands(), FakeClock(NOW))

    return run(scenario())


def server(*, forbidden: Resource | None = None, **objects: Sequence[JSONObject]) -> Server:
    given = {CORE_EVENTS: objects.get("events", ()), ROLE_SCALERS: objects.get("scalers", ())}
    managers: dict[Resource, Sequence[JSONObject]] = {DEPLOYMENTS: (), LEASES: ()}
    return Server(given | managers, frozenset({forbidden} if forbidden else ()))


def test_sets_of_equal_name_have_their_own_scalers_and_events() -> None:
    events = [named(REFUSAL, "web", "test")]
    found = told(server(events=events, scalers=[SCALER]), [a_set(), a_set(namespace="test"), a_set("api")])
    assert [(one.namespace, one.target, one.code) for one in found] == [
        ("prod", "web", "LWS-E016"),
        ("test", "web", "LWS-E017"),
        ("prod", "api", "LWS-E093"),
    ]


def test_event_without_a_namespace_uses_its_own() -> None:
    plain = named(REFUSAL, "web", "test")
    del plain["involvedObject"]["namespace"]
    found = told(server(events=[plain]), [a_set(), a_set(namespace="test")])
    assert [one.code for one in found] == ["LWS-E093", "LWS-E017"]


def test_events_of_other_kinds_do_not_explain_the_set() -> None:
    other = {**REFUSAL, "involvedObject": REFUSAL["involvedObject"] | {"kind": "LeaderWorkerSet"}}
    assert told(server(events=[other]), [a_set()])[0].code == "LWS-E093"


def test_lists_are_read_once_for_hundreds_of_sets() -> None:
    asked = server()
    sets = [a_set(f"w{at}", namespace) for at in range(100) for namespace in ("prod", "test")]
    assert {one.code for one in told(asked, sets)} == {"LWS-E093"}
    assert sorted(asked.asked) == sorted([CORE_EVENTS.path(""), ROLE_SCALERS.path("")])


def test_single_namespace_reads_only_its_lists() -> None:
    asked = server()
    told(asked, [a_set(namespace="test")], "test")
    assert sorted(asked.asked) == sorted([CORE_EVENTS.path("test"), ROLE_SCALERS.path("test")])


def test_finished_sets_need_no_requests() -> None:
    asked = server(scalers=[SCALER])
    done = a_set(status=DONE)
    assert [one.verdict for one in told(asked, [done])] == [Verdict.HEALTHY]
    assert asked.asked == []
    both = told(asked, [done, a_set("api")])
    assert [one.verdict for one in both] == [Verdict.HEALTHY, Verdict.PROGRESSING]


def test_manager_is_read_when_a_set_is_not_observed() -> None:
    asked = server()
    (found,) = told(asked, [a_set(generation=2)])
    assert found.code == "LWS-E005"
    assert any("deployments" in path for path in asked.asked)


def test_forbidden_lists_are_reported_for_each_set() -> None:
    found = told(server(forbidden=ROLE_SCALERS), [a_set(), a_set(namespace="test")])
    assert [one.unread for one in found] == [(ROLE_SCALERS.group_resource,)] * 2
