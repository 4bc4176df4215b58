"""Tests the watch state machine with a table of transitions, and with properties of each run."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.kuberuntime.cache.informing import pod

from kuberuntime.cache.watch import (
    Bookmark,
    Input,
    ListCompleted,
    ListItemRemoved,
    ListPage,
    ListStarted,
    ObjectApplied,
    ObjectDeleted,
    Output,
    Phase,
    Relist,
    RequestFailed,
    State,
    StreamEnded,
    StreamEvent,
    StreamOpened,
    StreamSilent,
    are_silent,
    step,
)
from kuberuntime.client.client import Page
from kuberuntime.errors import APIError, ConnectionFailedError, KubeError, from_status
from kuberuntime.objects.meta import JSONObject, ResourceVersion


def at(phase: Phase, version: str = "", **rest: Any) -> State:
    return State(phase, ResourceVersion(version), **rest)


def page(version: str, *items: JSONObject, token: str = "") -> Page:
    return Page(items, ResourceVersion(version), token)


def refusal(code: int, reason: str = "") -> APIError:
    return from_status({"code": code, "reason": reason, "message": "no"})


END: JSONObject = {"metadata": {"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}}}
GONE: JSONObject = {"kind": "Status", "code": 410, "reason": "Expired"}
LEADER_CHANGED: JSONObject = {"kind": "Status", "code": 500, "reason": "InternalError"}
ERROR: KubeError = ConnectionFailedError("refused")
SEVEN = ResourceVersion("7")
EMPTY, PAGING, INITIAL, LISTED, WATCHING = Phase
PAGED = at(EMPTY, is_streaming=False)

TABLE: dict[str, tuple[State, Input, State, tuple[Output, ...]]] = {
    "a single page is a whole list": (
        PAGED,
        page("7", pod(version=3)),
        at(LISTED, "7", is_streaming=False),
        (ListStarted(), ListPage((pod(version=3),)), ListCompleted(SEVEN)),
    ),
    "a first page leads to the next": (
        PAGED,
        page("7", pod(version=3), token="t"),
        at(PAGING, token="t", is_streaming=False),
        (ListStarted(), ListPage((pod(version=3),))),
    ),
    "a middle page leads to the next": (
        at(PAGING, token="t"),
        page("7", pod(version=3), token="u"),
        at(PAGING, token="u"),
        (ListPage((pod(version=3),)),),
    ),
    "the last page completes the list": (
        at(PAGING, token="t"),
        page("7", pod(version=3)),
        at(LISTED, "7"),
        (ListPage((pod(version=3),)), ListCompleted(SEVEN)),
    ),
    "pages that expire are asked for in one piece": (
        at(PAGING, token="t"),
        RequestFailed(refusal(410, "Expired")),
        at(EMPTY, limit=0, failures=1),
        (),
    ),
    "a page that fails is asked for again": (
        at(PAGING, token="t"),
        RequestFailed(ERROR),
        at(PAGING, token="t", failures=1),
        (),
    ),
    "a list that fails is asked for again": (
        PAGED,
        RequestFailed(ERROR),
        at(EMPTY, is_streaming=False, failures=1),
        (),
    ),
    "failures add up": (
        at(EMPTY, failures=3, is_streaming=False),
        RequestFailed(refusal(500)),
        at(EMPTY, failures=4, is_streaming=False),
        (),
    ),
    "a list after failures leaves one to wait for": (
        at(EMPTY, failures=9, is_streaming=False),
        page("7"),
        at(LISTED, "7", failures=1, is_streaming=False),
        (ListStarted(), ListPage(()), ListCompleted(SEVEN)),
    ),
    "a server without streaming lists is asked for pages": (
        at(EMPTY),
        RequestFailed(refusal(422, "Invalid")),
        at(EMPTY, is_streaming=False),
        (),
    ),
    "so is one that does not know the words": (
        at(EMPTY),
        RequestFailed(refusal(400, "BadRequest")),
        at(EMPTY, is_streaming=False),
        (),
    ),
    "a refused page is no reason to stop paging": (
        PAGED,
        RequestFailed(refusal(400, "BadRequest")),
        at(EMPTY, is_streaming=False, failures=1),
        (),
    ),
    "a server that is away may still stream lists later": (at(EMPTY), RequestFailed(ERROR), at(EMPTY, failures=1), ()),
    "a streaming list begins": (at(EMPTY), StreamOpened(), at(INITIAL), (ListStarted(),)),
    "a streaming list brings objects": (
        at(INITIAL),
        StreamEvent("ADDED", pod(version=3)),
        at(INITIAL),
        (ListPage((pod(version=3),)),),
    ),
    "an object may vanish before the list is complete": (
        at(INITIAL),
        StreamEvent("DELETED", pod(version=4)),
        at(INITIAL),
        (ListItemRemoved(pod(version=4)),),
    ),
    "its bookmark completes a streaming list": (
        at(INITIAL, failures=2),
        StreamEvent("BOOKMARK", END),
        at(WATCHING, "7"),
        (ListCompleted(SEVEN),),
    ),
    "another bookmark does not": (at(INITIAL), StreamEvent("BOOKMARK", pod(version=6)), at(INITIAL), ()),
    "a streaming list that breaks off starts over": (at(INITIAL), RequestFailed(ERROR), at(EMPTY, failures=1), ()),
    "a streaming list that ends early starts over": (at(INITIAL), StreamEnded(0.1), at(EMPTY, failures=1), ()),
    "a streaming list that fails starts over": (
        at(INITIAL),
        StreamEvent("ERROR", LEADER_CHANGED),
        at(EMPTY, failures=1),
        (),
    ),
    "a watch opens": (at(LISTED, "7"), StreamOpened(), at(WATCHING, "7"), ()),
    "a watch that cannot be opened is tried again": (
        at(LISTED, "7"),
        RequestFailed(ERROR),
        at(LISTED, "7", failures=1),
        (),
    ),
    "a watch from an expired version lists again": (
        at(LISTED, "7"),
        RequestFailed(refusal(410, "Gone")),
        at(EMPTY, failures=1),
        (),
    ),
    "an addition moves the version": (
        at(WATCHING, "7", failures=2),
        StreamEvent("ADDED", pod(version=8)),
        at(WATCHING, "8", has_received_event=True, sends_events=True),
        (ObjectApplied(pod(version=8)),),
    ),
    "so does a change": (
        at(WATCHING, "7"),
        StreamEvent("MODIFIED", pod(version=8)),
        at(WATCHING, "8", has_received_event=True, sends_events=True),
        (ObjectApplied(pod(version=8)),),
    ),
    "so does a deletion": (
        at(WATCHING, "7"),
        StreamEvent("DELETED", pod(version=8)),
        at(WATCHING, "8", has_received_event=True, sends_events=True),
        (ObjectDeleted(pod(version=8)),),
    ),
    "so does a bookmark": (
        at(WATCHING, "7"),
        StreamEvent("BOOKMARK", pod(version=7)),
        at(WATCHING, "7", has_received_event=True, sends_events=True),
        (Bookmark(SEVEN),),
    ),
    "an unknown type means nothing": (
        at(WATCHING, "7"),
        StreamEvent("PONDERED", pod(version=9)),
        at(WATCHING, "7"),
        (),
    ),
    "a watch that falls behind lists again": (
        at(WATCHING, "7"),
        StreamEvent("ERROR", GONE),
        at(EMPTY, failures=1),
        (),
    ),
    "a watch that fails goes on from its version": (
        at(WATCHING, "7"),
        StreamEvent("ERROR", LEADER_CHANGED),
        at(LISTED, "7", failures=1),
        (),
    ),
    "a watch that breaks off goes on from its version": (
        at(WATCHING, "7"),
        RequestFailed(ERROR),
        at(LISTED, "7", failures=1),
        (),
    ),
    "a watch that lasted goes on at once": (at(WATCHING, "7", failures=1), StreamEnded(290), at(LISTED, "7"), ()),
    "a watch that ended at once goes on after a wait": (
        at(WATCHING, "7"),
        StreamEnded(0.01),
        at(LISTED, "7", failures=1, empty_streams=1),
        (),
    ),
    "a third empty watch in a row lists again": (
        at(WATCHING, "7", failures=2, empty_streams=2),
        StreamEnded(0.01),
        at(EMPTY, failures=3, empty_streams=3),
        (),
    ),
    "empty watches keep their count across a list": (
        at(INITIAL, failures=3, empty_streams=3),
        StreamEvent("BOOKMARK", END),
        at(WATCHING, "7", empty_streams=3),
        (ListCompleted(SEVEN),),
    ),
    "the next one after the list goes on from its version": (
        at(WATCHING, "7", empty_streams=3),
        StreamEnded(0.01),
        at(LISTED, "7", failures=1, empty_streams=4),
        (),
    ),
    "an event ends the count of empty watches": (
        at(WATCHING, "7", failures=2, empty_streams=5),
        StreamEvent("BOOKMARK", pod(version=7)),
        at(WATCHING, "7", has_received_event=True, sends_events=True),
        (Bookmark(SEVEN),),
    ),
    "so does a watch that lasted": (at(WATCHING, "7", empty_streams=2), StreamEnded(290), at(LISTED, "7"), ()),
    "a watch that falls silent lists again": (
        at(WATCHING, "7", has_received_event=True, sends_events=True),
        StreamSilent(),
        at(EMPTY, is_stalled=True, sends_events=True),
        (),
    ),
    "a watch that has never spoken opens again": (at(WATCHING, "7"), StreamSilent(), at(LISTED, "7"), ()),
    "a silent list starts over": (at(INITIAL), StreamSilent(), at(EMPTY, is_stalled=True), ()),
    "a silent watch opens": (
        at(EMPTY, is_stalled=True),
        StreamOpened(),
        at(INITIAL, is_stalled=True),
        (ListStarted(),),
    ),
    "the first object ends the silence": (
        at(INITIAL, is_stalled=True),
        StreamEvent("ADDED", pod(version=3)),
        at(INITIAL),
        (ListPage((pod(version=3),)),),
    ),
    "so does an error": (at(EMPTY, is_stalled=True), RequestFailed(ERROR), at(EMPTY, failures=1), ()),
    "a list that took too long starts over": (at(PAGING, token="t"), StreamEnded(290), at(EMPTY), ()),
    "a relist forgets where the watch was": (at(WATCHING, "7"), Relist(), at(EMPTY), ()),
    "a relist starts a list over": (at(PAGING, token="t"), Relist(), at(EMPTY), ()),
}


@pytest.mark.parametrize(("state", "happened", "after", "outputs"), TABLE.values(), ids=TABLE)
def test_step_returns_the_next_state_and_outputs(
    state: State, happened: Input, after: State, outputs: tuple[Output, ...]
) -> None:
    assert step(state, happened) == (after, outputs)


STREAMED: st.SearchStrategy[Input] = st.one_of(
    st.builds(StreamEvent, st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]), st.just(pod(version=8))),
    st.sampled_from([StreamEvent("BOOKMARK", END), StreamEvent("ERROR", GONE), StreamEvent("ERROR", LEADER_CHANGED)]),
    st.builds(StreamEnded, st.floats(0, 300)),
    st.sampled_from([RequestFailed(ERROR), Relist(), StreamSilent()]),
)
ASKED: st.SearchStrategy[Input] = st.one_of(
    st.sampled_from(
        [RequestFailed(ERROR), RequestFailed(refusal(410)), RequestFailed(refusal(422)), Relist(), StreamEnded(290.0)]
    ),
)
PAGES: st.SearchStrategy[Input] = st.sampled_from([page("7"), page("7", token="t")])


def fitting(state: State) -> st.SearchStrategy[Input]:
    """Return the inputs that a driver can provide in this state."""
    match state.phase:
        case Phase.INITIAL | Phase.WATCHING:
            return STREAMED
        case Phase.LISTED:
            return ASKED | st.just(StreamOpened())
        case Phase.EMPTY if state.is_streaming:
            return ASKED | st.just(StreamOpened())
        case _:
            return ASKED | PAGES


@settings(max_examples=50)
@given(st.data())
@pytest.mark.slow
def test_changes_follow_a_complete_list_and_lists_never_mix(data: st.DataObject) -> None:
    state, listing, complete = State(), False, False
    for _ in range(data.draw(st.integers(0, 30))):
        state, outputs = step(state, data.draw(fitting(state)))
        for output in outputs:
            match output:
                case ListStarted():
                    listing = True
                case ListPage() | ListItemRemoved():
                    assert listing
                case ListCompleted():
                    assert listing
                    listing, complete = False, True
                case ObjectApplied() | ObjectDeleted() | Bookmark():
                    assert complete
        if state.phase in {Phase.LISTED, Phase.WATCHING}:
            assert state.version


@given(st.integers(0, 1000), st.floats(0, 1))
def test_wait_is_bounded(failures: int, jitter: float) -> None:
    assert 0 <= State(failures=failures).wait(jitter) <= 30


def test_only_the_first_attempt_is_not_delayed() -> None:
    assert State().wait(1.0) == 0
    assert State(failures=1).wait(1.0) == pytest.approx(0.2)
    assert State(failures=1).wait(0.0) == pytest.approx(0.1)


NOT_SERVED = from_status({"code": 404, "reason": "NotFound", "message": "the server could not find the resource"})


@pytest.mark.parametrize("phase", [Phase.EMPTY, Phase.LISTED, Phase.WATCHING, Phase.PAGING, Phase.INITIAL])
def test_optional_kind_that_is_not_served_has_no_objects(phase: Phase) -> None:
    """The CRD may be created or deleted later, so nothing waits for this cache."""
    state = State(phase=phase, version=ResourceVersion("7"), failures=2, is_optional=True)

    after, outputs = step(state, RequestFailed(NOT_SERVED))

    assert outputs == (ListStarted(), ListCompleted(ResourceVersion("")))
    assert (after.phase, after.failures, after.is_optional) == (Phase.EMPTY, 3, True)


def test_required_kind_that_is_not_served_blocks() -> None:
    after, outputs = step(State(), RequestFailed(NOT_SERVED))

    assert outputs == ()
    assert after.phase is Phase.EMPTY


SPEAKING, SILENT, IDLE = State(sends_events=True), State(sends_events=True, is_stalled=True), State()


@pytest.mark.parametrize(
    ("states", "silent"),
    [((), False), ((IDLE,), False), ((SILENT, IDLE), True), ((SILENT, SILENT), True), ((SILENT, SPEAKING), False)],
)
def test_watches_are_silent_when_all_that_spoke_are(states: tuple[State, ...], silent: bool) -> None:
    assert are_silent(states) is silent
