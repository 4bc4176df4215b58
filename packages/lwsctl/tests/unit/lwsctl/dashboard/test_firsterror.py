"""Tests how the first error of several ranks is found."""

import pytest
from tests.dashboardhouse import open_house
from tests.unit.lwsctl.dashboard.test_pages import web

from lwsctl.dashboard import firsterror
from lwsctl.dashboard.logstream import RankChoice


def test_first_error_is_the_earliest_of_all_ranks() -> None:
    logs = {
        "0/0": [b"2026-01-01T00:00:03.5Z lost connection to rank 1", b"2026-01-01T00:00:04Z stopping"],
        "0/1": [b"2026-01-01T00:00:00Z step 1", b"2026-01-01T00:00:03.25Z RuntimeError: CUDA error"],
        "0/2": [b"2026-01-01T00:00:01Z loaded shard 3"],
    }
    first = firsterror.earliest_error(logs)
    assert first == firsterror.FirstError("0/1", "2026-01-01T00:00:03.25Z", "RuntimeError: CUDA error", 3)


def test_error_of_a_peer_follows_the_error_of_a_rank() -> None:
    """The failed rank printed its error after a long traceback, when its peers had already detected its exit."""
    logs = {
        "0/0": [b"2026-01-01T00:00:03Z torch.distributed.DistBackendError: Connection closed by peer"],
        "0/1": [b"2026-01-01T00:00:04Z \x1b[31mKeyError: 'shard'\x1b[0m"],
    }
    first = firsterror.earliest_error(logs)
    assert first is not None
    assert (first.rank, first.text) == ("0/1", "KeyError: 'shard'")


def test_lines_without_an_error_have_no_first_error() -> None:
    assert firsterror.earliest_error({"0/0": [b"2026-01-01T00:00:01Z loaded shard 3"], "0/1": []}) is None


def test_search_covers_groups_with_a_problem_or_named_ranks() -> None:
    view = web(ready=False)
    assert set(firsterror.ranks_to_search([(view, ())], RankChoice(frozenset({"1/1"})))) == {"1/1"}
    assert len(firsterror.ranks_to_search([(web(), ())], RankChoice())) == 4


def test_search_of_a_disaggregated_set_names_roles() -> None:
    owners = [(web(), ("new", "prefill")), (web(ready=False), ("decode", "decode"))]
    assert set(firsterror.ranks_to_search(owners, RankChoice(frozenset({"prefill/1/1"})))) == {"new/1/1"}
    assert set(firsterror.ranks_to_search(owners, RankChoice(frozenset({"*/0"})))) == {
        "new/0/0",
        "new/1/0",
        "decode/0/0",
        "decode/1/0",
    }


@pytest.mark.slow
async def test_panel_quotes_the_first_error_of_its_group() -> None:
    async with open_house() as house:
        await house.put_set("web", replicas=1, size=3, ready=0)
        await house.crash("web-0-2")
        await house.shows(web_0="Pending", web_0_2="CrashLoopBackOff")
        house.transport.logs = {
            "web-0": b"2026-01-01T00:00:05Z lost connection to rank 2\n",
            "web-0-2": b"2026-01-01T00:00:04Z RuntimeError: password=hunter2hunter2 <b>\n",
        }
        async with house.browser() as session:
            pane = await house.text(session, "pane/default/web/0/0")
            assert "<mark>RuntimeError: password=[masked] &lt;b&gt;</mark>" in pane
            assert 'href="sets/default/web?rank=0/2"' in pane
            page = await house.text(session, "sets/default/web")
            assert 'data-failed="0/2"' in page, "the rank that explains the others is selected"
            first = await house.text(session, "first-error/sets/default/web")
            assert '"rank": "0/2"' in first
            assert '"rank": "0/0"' in await house.text(session, "first-error/sets/default/web?rank=0/0")
            await house.text(session, "first-error/sets/default/none", status=404)
