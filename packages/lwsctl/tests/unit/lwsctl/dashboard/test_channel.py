"""Tests that a reconnecting client receives each missed event once.

A client that missed too much, or knows another server, gets everything.
"""

import json

import pytest

from lwsctl.dashboard.channel import KEPT_FRAMES, PageChannel
from lwsctl.dashboard.fragments import Fragment
from lwsctl.dashboard.markup import Safe


def show(channel: PageChannel, number: int) -> str:
    """Send a state. Return its number."""
    channel.update({"r": [Fragment("a", Safe(f"<i>{number}</i>"))]})
    return channel.ident


def texts(sent: list[bytes]) -> list[str]:
    """Return the HTML that each event inserts."""
    found = []
    for one in sent:
        ident, event, data = one.decode().rstrip("\n").split("\n")
        assert ident.startswith("id: epoch.")
        content = json.loads(data.removeprefix("data: "))
        found.append(content["regions"]["r"] if event == "event: whole" else content["put"][0][2])
    return found


def test_subscriber_gets_the_changes_that_it_missed() -> None:
    channel = PageChannel("epoch")
    first, second, third = (show(channel, number) for number in range(3))
    assert texts(channel.events_after(first)) == ["<i>1</i>", "<i>2</i>"]
    assert texts(channel.events_after(second)) == ["<i>2</i>"]
    assert channel.events_after(third) == []


def test_unchanged_state_sends_no_event() -> None:
    channel = PageChannel("epoch")
    assert show(channel, 1) == show(channel, 1)


@pytest.mark.parametrize(
    "ident", ["", "epoch", "epoch.", "epoch.x", "epoch.99", "epoch.-1", "other.1", "epoch.1.1", "9" * 5000]
)
def test_unknown_state_gets_the_whole_page(ident: str) -> None:
    channel = PageChannel("epoch")
    show(channel, 1)
    assert texts(channel.events_after(ident)) == ["<i>1</i>"]


def test_bounded_history_loses_no_change() -> None:
    channel = PageChannel("epoch")
    idents = [show(channel, number) for number in range(KEPT_FRAMES + 10)]
    assert len(channel.events_after(idents[9])) == KEPT_FRAMES
    assert texts(channel.events_after(idents[8])) == [f"<i>{KEPT_FRAMES + 9}</i>"]


def test_history_is_bounded_in_bytes() -> None:
    channel = PageChannel("epoch")
    idents = [show(channel, number) for number in (0, 1)]
    channel.update({"r": [Fragment("a", Safe("x" * 2**20))]})
    assert b"event: whole" in channel.events_after(idents[1])[0]
