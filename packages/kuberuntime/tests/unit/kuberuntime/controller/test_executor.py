"""Tests that the executor performs plans as documented in `kuberuntime/plan.py`."""

from dataclasses import dataclass, field

import msgspec
import pytest
from msgspec.structs import replace
from testkit.fakes import ScriptedTransport, failure, respond
from testkit.virtualtime import VirtualClock, run

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Response
from kuberuntime.controller.executionerrors import ActionError, ExecutionError, PlanError, RequeueError
from kuberuntime.controller.executor import Executor
from kuberuntime.controller.writes import ObjectRemoval, ObjectWrite, Write
from kuberuntime.errors import ConnectionFailedError
from kuberuntime.objects.meta import JSON, UID, JSONObject, ObjectKey, ResourceVersion
from kuberuntime.objects.resources import PODS, STATEFULSETS
from kuberuntime.plan import (
    AcceptedField,
    Action,
    Apply,
    Create,
    Delete,
    DeleteCollection,
    Emit,
    Event,
    Finally,
    Patch,
    Plan,
    Put,
    PutStatus,
    WriteAction,
)

KEY = ObjectKey("default", "web")
POD: JSONObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"}}
WRITTEN: JSONObject = {"metadata": {"name": "web", "namespace": "default", "resourceVersion": "7", "uid": "u"}}
DONE = Event("Normal", "Created", "Create", "Created pod web", {"name": "web"})
FAILED = Event("Warning", "FailedCreate", "Create", "Failed to create pod web: {error}", {"name": "web"})

APPLY = Apply(resource=PODS, object=POD, manager="lws", on_success=(DONE,), on_failure=(FAILED,))
CREATE = Create(resource=PODS, object=POD, on_success=(DONE,), on_failure=(FAILED,))
DELETE = Delete(
    resource=PODS, key=KEY, propagation="Foreground", uid=UID("u"), on_success=(DONE,), on_failure=(FAILED,)
)
STATUS = PutStatus(
    resource=PODS,
    object=POD | {"status": {"phase": "Running"}},
    resource_version=ResourceVersion("6"),
    on_success=(DONE,),
    on_failure=(FAILED,),
)
PATCH = Patch(
    resource=PODS,
    key=KEY,
    patch={"metadata": {"uid": "u"}, "status": {"phase": "Failed"}},
    subresource="status",
    on_success=(DONE,),
    on_failure=(FAILED,),
)
PUT = Put(resource=PODS, object=POD, on_success=(DONE,), on_failure=(FAILED,))
BIND = replace(CREATE, object=POD | {"kind": "Binding"}, subresource="binding")
ALL = DeleteCollection(resource=PODS, namespace="default", on_success=(DONE,), on_failure=(FAILED,))
WRITE = ObjectWrite(PODS, KEY, ResourceVersion("7"))
GONE = ObjectRemoval(PODS, KEY, UID("u"))
CONFLICT = failure(409, "Conflict", "the object has been modified")


@dataclass
class Outcome:
    """The result of a plan."""

    transport: ScriptedTransport
    events: list[Event] = field(default_factory=list)
    writes: tuple[Write, ...] = ()
    error: ExecutionError | None = None

    def record(self, event: Event) -> None:
        self.events.append(event)


def execute(plan: Plan, *script: Response | Exception) -> Outcome:
    outcome = Outcome(ScriptedTransport(*script))

    async def scenario() -> None:
        executor = Executor(Client(outcome.transport), outcome, VirtualClock())
        try:
            outcome.writes = await executor.execute(plan)
        except ExecutionError as error:
            outcome.writes, outcome.error = error.writes, error

    run(scenario())
    return outcome


@pytest.mark.parametrize(
    ("action", "script", "writes", "events"),
    [
        (APPLY, respond(200, WRITTEN), (WRITE,), [DONE]),
        (CREATE, respond(201, WRITTEN), (WRITE,), [DONE]),
        (replace(CREATE, if_absent=True), failure(409, "AlreadyExists"), (), []),
        (DELETE, respond(200, WRITTEN), (GONE,), [DONE]),
        (DELETE, failure(404, "NotFound"), (GONE,), []),
        (DELETE, CONFLICT, (GONE,), []),
        (replace(DELETE, uid=None), respond(200, WRITTEN), (GONE,), [DONE]),
        (replace(DELETE, uid=None), respond(200, {"kind": "Status", "details": {"uid": "u"}}), (GONE,), [DONE]),
        (replace(DELETE, uid=None), failure(404, "NotFound"), (ObjectRemoval(PODS, KEY, None),), []),
        (STATUS, respond(200, WRITTEN), (WRITE,), [DONE]),
        (replace(STATUS, if_present=True), failure(404, "NotFound"), (), []),
        (PATCH, respond(200, WRITTEN), (WRITE,), [DONE]),
        (replace(PATCH, if_present=True), failure(404, "NotFound"), (), []),
        (PUT, respond(200, WRITTEN), (WRITE,), [DONE]),
        (BIND, respond(201, {"kind": "Status", "status": "Success"}), (), [DONE]),
        (ALL, respond(200, {"kind": "PodList", "items": []}), (), [DONE]),
    ],
    ids=[
        "apply",
        "create",
        "create what exists, if absent",
        "delete",
        "delete what is gone",
        "delete what was replaced under its name",
        "delete without a UID",
        "delete that is done at once",
        "delete what is gone, without a UID",
        "put status",
        "put the status of what is gone, if present",
        "patch",
        "patch what is gone, if present",
        "put",
        "bind",
        "delete a collection",
    ],
)
def test_successful_action_returns_writes_and_events(
    action: Action, script: Response, writes: tuple[Write, ...], events: list[Event]
) -> None:
    outcome = execute(Plan((action,)), script)

    assert (outcome.error, outcome.writes, outcome.events) == (None, writes, events)


def owned(name: str, uid: str, **spec: JSON) -> JSONObject:
    """Return the pod. Its controller is the node `name`, if one is given."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid, "controller": True}
    return POD | {"metadata": POD["metadata"] | ({"ownerReferences": [owner]} if uid else {}), "spec": spec}


ACCEPTED = (
    AcceptedField("spec.kind", "right"),
    AcceptedField("spec.of", {"app": "web", "rank": None}, (Event("Warning", "Used", "Create", "used", {}),)),
)
REFUSED = "it exists: it has no controller, its spec.kind is not right, and its spec.of does not match"


@pytest.mark.parametrize(
    ("existing", "message"),
    [
        (owned("n", "u"), ""),
        (owned("m", "v"), "it exists: it is controlled by Node m"),
        (owned("", ""), REFUSED),
        (owned("", "", kind="right"), ""),
        (owned("", "", of={"app": "web", "rank": "3"}), ""),
        (owned("", "", of={}), REFUSED),
        (owned("", "", of={"app": "api"}), REFUSED),
        (owned("", "", of={"app": "web", "tier": "1"}), REFUSED),
    ],
    ids=[
        *("its own", "of another owner", "of nobody", "of a user, accepted", "of a user, matching"),
        *("without members", "with another value", "with another member"),
    ],
)
def test_object_of_a_different_owner_is_named(existing: JSONObject, message: str) -> None:
    """Either the response to the creation was lost and no cache has the object yet, or the name is in use."""
    found = respond(200, {"metadata": {"resourceVersion": "7"}, "items": [existing]})
    create = replace(CREATE, object=owned("n", "u"), unless_own=True, accepted=ACCEPTED)

    outcome = execute(Plan((create,)), failure(409, "AlreadyExists", "it exists"), found)

    assert str(outcome.error or "") == (f"create Pod default/web: {message}" if message else "")
    assert [event.note for event in outcome.events] == (
        [f"Failed to create pod web: {message}"] if message else ["used"] if "of" in existing["spec"] else []
    )
    assert outcome.transport.requests[-1].query[0] == ("fieldSelector", "metadata.name=web")


@pytest.mark.parametrize(
    ("existing", "message"),
    [
        ([owned("n", "u")], "no such field"),
        ([owned("n", "earlier")], "no such field"),
        ([], "no such field"),
        ([owned("", "", selector={"app": "web"})], "no such field"),
        ([owned("", "", selector={"app": "api"})], 'pods "web" already exists: it has no controller'),
        ([owned("m", "v")], 'pods "web" already exists: it is controlled by Node m'),
    ],
    ids=["its own", "of a predecessor", "deleted meanwhile", "orphan", "of nobody", "of another owner"],
)
def test_apply_to_an_object_of_a_different_owner_names_it(existing: list[JSONObject], message: str) -> None:
    listing = respond(200, {"metadata": {"resourceVersion": "7"}, "items": existing})
    apply = replace(APPLY, object=owned("n", "u", selector={"app": "web"}))

    outcome = execute(Plan((apply,)), failure(422, "Invalid", "no such field"), listing)

    assert str(outcome.error) == f"apply Pod default/web: {message}"
    assert [event.note for event in outcome.events] == [f"Failed to create pod web: {message}"]


@pytest.mark.parametrize("is_silent", [False, True])
def test_object_that_exists_may_be_a_silent_failure(*, is_silent: bool) -> None:
    create = replace(CREATE, is_silent_if_exists=is_silent)

    outcome = execute(Plan((create,)), failure(409, "AlreadyExists", "it exists"))
    refused = execute(Plan((create,)), failure(403, "Forbidden", "no"))

    assert isinstance(outcome.error, ActionError)
    assert bool(outcome.events) != is_silent
    assert refused.events


@pytest.mark.parametrize("items", [[owned("n", "earlier")], []], ids=["of a predecessor", "deleted meanwhile"])
def test_object_of_a_predecessor_causes_a_requeue(items: list[JSONObject]) -> None:
    found = respond(200, {"metadata": {"resourceVersion": "7"}, "items": items})
    create = replace(CREATE, object=owned("n", "u"), unless_own=True)

    outcome = execute(Plan((create,)), failure(409, "AlreadyExists", "it exists"), found)

    assert isinstance(outcome.error, RequeueError)
    assert outcome.events == []


@pytest.mark.parametrize(
    ("existing", "error"),
    [
        (owned("n", "u", data=1, more=2), ""),
        (owned("n", "u", data=2), "it exists: its spec.data differs"),
        (owned("n", "u"), "it exists: its spec.data differs"),
    ],
    ids=["equal", "other content", "without content"],
)
def test_own_object_with_other_content_causes_a_requeue(existing: JSONObject, error: str) -> None:
    """An existing name is not a success by itself, because the object may be a different one."""
    found = respond(200, {"metadata": {"resourceVersion": "7"}, "items": [existing]})
    create = replace(CREATE, object=owned("n", "u", data=1), unless_own=True, equal=(("spec", "data"),))

    outcome = execute(Plan((create,)), failure(409, "AlreadyExists", "it exists"), found)

    assert str(outcome.error or "") == error
    assert isinstance(outcome.error, RequeueError) == bool(error)


@pytest.mark.parametrize(
    ("script", "statuses"), [(failure(403, "Forbidden", "quota"), 1), (failure(409, "Conflict", "newer"), 0)]
)
def test_failed_plan_performs_its_failure_patches(script: Response, statuses: int) -> None:
    """A plan that was computed from an outdated object is only recomputed."""
    put = replace(PUT, subresource="")

    outcome = execute(Plan((put, DELETE), on_failure=(PATCH,)), script, respond(200, WRITTEN))

    assert outcome.error is not None
    assert [one.method for one in outcome.transport.requests] == ["PUT", *["PATCH"] * statuses]


@pytest.mark.parametrize(("action", "kept"), [(APPLY, WRITTEN), (CREATE, {}), (PATCH, {}), (PUT, {}), (STATUS, {})])
def test_only_the_answer_to_an_apply_is_kept(action: WriteAction, kept: JSONObject) -> None:
    """A plan may create a thousand objects, and their responses would be kept until the plan completes."""
    (write,) = execute(Plan((action,)), respond(200, WRITTEN)).writes
    assert isinstance(write, ObjectWrite)
    assert write.object == kept


@pytest.mark.parametrize(
    ("action", "script", "message"),
    [
        (APPLY, failure(403, "Forbidden", "quota"), "apply Pod default/web: quota"),
        (CREATE, failure(409, "AlreadyExists", "it exists"), "create Pod default/web: it exists"),
        (replace(DELETE, uid=None), failure(409, "Conflict", "busy"), "delete Pod default/web: busy"),
        (STATUS, failure(404, "NotFound", "gone"), "write the status of Pod default/web: gone"),
        (PATCH, failure(409, "Conflict", "newer"), "patch Pod/status default/web: newer"),
        (PATCH, failure(404, "NotFound", "gone"), "patch Pod/status default/web: gone"),
        (PUT, failure(422, "Invalid", "no such field"), "replace Pod default/web: no such field"),
        (BIND, failure(409, "Conflict", "bound"), "create Pod/binding default/web: bound"),
        (ALL, failure(405, "MethodNotAllowed", "not so"), "delete all Pod in default: not so"),
    ],
    ids=[
        "apply",
        "create",
        "delete",
        "put status",
        "patch a newer one",
        "patch what is gone",
        "put",
        "bind",
        "delete a collection",
    ],
)
def test_rejected_action_emits_its_failure_event(action: Action, script: Response, message: str) -> None:
    outcome = execute(Plan((action,)), script)

    reason = message.rsplit(": ", 1)[1]
    assert isinstance(outcome.error, ActionError)
    assert str(outcome.error) == message
    assert outcome.events == [replace(FAILED, note=f"Failed to create pod web: {reason}")]


def test_action_without_an_answer_has_no_event() -> None:
    outcome = execute(Plan((CREATE,)), ConnectionFailedError("cannot reach it"))

    assert isinstance(outcome.error, ActionError)
    assert outcome.events == []


@pytest.mark.parametrize("action", [STATUS, PUT], ids=["put status", "put"])
def test_replacement_of_a_newer_object_requeues_without_event(action: Action) -> None:
    outcome = execute(Plan((action,)), CONFLICT)

    assert isinstance(outcome.error, RequeueError)
    assert outcome.events == []


def test_status_is_written_at_its_observed_version() -> None:
    outcome = execute(Plan((STATUS,)), respond(200, WRITTEN))

    request = outcome.transport.requests[0]
    assert (request.method, request.path) == ("PUT", "/api/v1/namespaces/default/pods/web/status")
    assert msgspec.json.decode(request.body) == POD | {
        "metadata": POD["metadata"] | {"resourceVersion": "6"},
        "status": {"phase": "Running"},
    }


@pytest.mark.parametrize(
    ("action", "method", "path"),
    [
        (PATCH, "PATCH", "/api/v1/namespaces/default/pods/web/status"),
        (replace(PUT, subresource="resize"), "PUT", "/api/v1/namespaces/default/pods/web/resize"),
        (BIND, "POST", "/api/v1/namespaces/default/pods/web/binding"),
        (ALL, "DELETE", "/api/v1/namespaces/default/pods"),
    ],
    ids=["patch", "put", "bind", "delete a collection"],
)
def test_action_uses_its_method_and_path(action: Action, method: str, path: str) -> None:
    outcome = execute(Plan((action,)), respond(200, WRITTEN))

    assert [(request.method, request.path) for request in outcome.transport.requests] == [(method, path)]


def test_deletion_without_propagation_uses_the_default() -> None:
    outcome = execute(Plan((Delete(resource=PODS, key=KEY, uid=UID("u"), grace_period=0),)), respond(200, WRITTEN))

    assert msgspec.json.decode(outcome.transport.requests[0].body) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u"},
        "gracePeriodSeconds": 0,
    }


def test_finally_actions_run_after_a_failure() -> None:
    plan = Plan((Finally(actions=(CREATE, DELETE), after=(STATUS,)), APPLY))

    outcome = execute(plan, failure(403, "Forbidden", "quota"), respond(200, WRITTEN))

    assert str(outcome.error) == "create Pod default/web: quota"
    assert outcome.writes == (WRITE,)
    assert [request.method for request in outcome.transport.requests] == ["POST", "PUT"]


def test_first_of_two_failures_is_reported() -> None:
    plan = Plan((Finally(actions=(CREATE,), after=(STATUS,)),))

    outcome = execute(plan, failure(403, "Forbidden", "quota"), CONFLICT)

    assert str(outcome.error) == "create Pod default/web: quota"


REPORT = Patch(
    resource=PODS, key=KEY, patch={"status": {"conditions": [{"message": "failed: {error}"}]}}, subresource="status"
)


def test_failure_is_reported_if_the_plan_requests_it() -> None:
    plan = Plan((Finally(actions=(CREATE, DELETE), after=(), on_failure=(REPORT,)), APPLY))

    outcome = execute(plan, failure(403, "Forbidden", "quota"), respond(200, WRITTEN))

    assert str(outcome.error) == "create Pod default/web: quota"
    assert [request.method for request in outcome.transport.requests] == ["POST", "PATCH"]
    sent = msgspec.json.decode(outcome.transport.requests[1].body)
    assert sent["status"]["conditions"] == [{"message": "failed: create Pod default/web: quota"}]


@pytest.mark.parametrize(
    ("script", "patches"),
    [
        (failure(403, "Forbidden", "quota"), 1),
        (failure(422, "Invalid", "class"), 1),
        (failure(500, "InternalError", "etcd"), 0),
        (ConnectionFailedError("gone"), 0),
    ],
    ids=["forbidden", "invalid", "a fault of the server", "no answer"],
)
def test_only_a_refusal_is_reported_by_on_refusal(script: Response | Exception, patches: int) -> None:
    """An error that a retry may resolve is not a rejection."""
    plan = Plan((Finally(actions=(CREATE,), on_rejection=(REPORT,)),))

    outcome = execute(plan, script, *[respond(200, WRITTEN)] * patches)

    assert [request.method for request in outcome.transport.requests] == ["POST", *["PATCH"] * patches]


@pytest.mark.parametrize("answers", [[respond(200, WRITTEN)], [CONFLICT]], ids=["success", "a newer object"])
def test_success_and_conflicts_report_no_failure(answers: list[Response]) -> None:
    """A conflict of a replacement is not a failure. The key is requeued, and its plan recomputed."""
    plan = Plan((Finally(actions=(STATUS,), after=(), on_failure=(REPORT,)),))

    outcome = execute(plan, *answers)

    assert len(outcome.transport.requests) == 1


@pytest.mark.parametrize(
    ("answers", "methods"),
    [
        ([failure(403, "Forbidden", "quota")], ["PUT", "PATCH"]),
        ([CONFLICT], ["PUT", "DELETE"]),
        ([respond(200, WRITTEN)], ["PUT", "DELETE"]),
    ],
    ids=["failure", "a newer object", "success"],
)
def test_otherwise_takes_the_place_of_after_a_failure(answers: list[Response], methods: list[str]) -> None:
    plan = Plan((Finally(actions=(PUT,), after=(DELETE,), otherwise=(REPORT,)),))

    outcome = execute(plan, *answers, respond(200, WRITTEN))

    assert [request.method for request in outcome.transport.requests] == methods


def test_plan_continues_after_finally_actions() -> None:
    plan = Plan((Finally(actions=(CREATE,), after=(STATUS,)), DELETE))

    outcome = execute(plan, *[respond(200, WRITTEN)] * 3)

    assert outcome.error is None
    assert outcome.writes == (WRITE, WRITE, GONE)


def test_given_body_is_sent_verbatim() -> None:
    outcome = execute(Plan((replace(CREATE, body=b'{ "a": 1 }'),)), respond(201, WRITTEN))

    assert outcome.transport.requests[0].body == b'{ "a": 1 }'


def test_first_failure_stops_the_plan_and_keeps_its_writes() -> None:
    outcome = execute(Plan((APPLY, CREATE, DELETE)), respond(200, WRITTEN), failure(403, "Forbidden", "quota"))

    assert isinstance(outcome.error, ActionError)
    assert outcome.writes == (WRITE,)
    assert [event.reason for event in outcome.events] == ["Created", "FailedCreate"]
    assert len(outcome.transport.requests) == 2


def test_error_of_a_plan_is_raised_after_its_actions() -> None:
    outcome = execute(Plan((APPLY,), error="group 3 has no leader"), respond(200, WRITTEN))

    assert isinstance(outcome.error, PlanError)
    assert (str(outcome.error), outcome.writes) == ("group 3 has no leader", (WRITE,))


def test_events_without_a_write_are_recorded() -> None:
    outcome = execute(Plan((Emit(events=(DONE, FAILED)),)))

    assert outcome.events == [DONE, FAILED]


def test_written_object_includes_its_kind() -> None:
    outcome = execute(Plan((Create(resource=STATEFULSETS, object=POD),)), respond(201, WRITTEN))

    assert outcome.writes == (ObjectWrite(STATEFULSETS, KEY, ResourceVersion("7")),)
