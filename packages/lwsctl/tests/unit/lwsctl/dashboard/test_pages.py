"""Tests that pages contain the same results as `lws get`, `lws explain` and `lws rollout status`."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from testkit import work
from tests import builders
from tests.disaggregated import disaggregatedset_object
from tests.unit.lwsctl.cli.views.test_episodetable import BARE, FULL
from tests.unit.lwsctl.cli.views.test_nodetable import GPUS, of, running_pod
from tests.unit.lwsctl.model.test_disaggregatedset import part, seen

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, POD_METRICS, PODS, STATEFULSETS, Resource
from leaderworkerset.api import labels
from lwsctl.dashboard.address import Address, Arrangement, NoSuchPageError, PageForm, PageKind, StateFilter, parse
from lwsctl.dashboard.fragments import Fragment, Rendering
from lwsctl.dashboard.pages import cells, ranktable, totals
from lwsctl.dashboard.pages.page import PageFacts
from lwsctl.dashboard.snapshot import Snapshot
from lwsctl.dashboard.staticfiles import files
from lwsctl.dashboard.subscriptions import PAGES, page_of
from lwsctl.diagnosis.catalogue import BY_CODE
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.groups import Readiness
from lwsctl.model.health import Verdict
from lwsctl.model.leaderworkerset import View, view
from lwsctl.views import devices

KEY = ObjectKey("default", "web")
REGIONS = ("head", "circumstances", "rows", "episode-logs", "episode-events")
STUCK = Diagnosis(
    target="web", namespace="default", verdict=Verdict.STUCK, sentence="no node has <enough> cpu", code="LWS-E036"
)


def web(*, ready: bool = True, groups: int = 2, size: int = 2, **fields: Any) -> View:
    """Return a LeaderWorkerSet with its pods."""
    lws = builders.leaderworkerset_object(replicas=groups, size=size, **fields)
    available = {"type": "Available", "status": str(ready), "observedGeneration": 1}
    count = groups if ready else 0
    lws["status"] = {
        "observedGeneration": 1,
        "readyReplicas": count,
        "updatedReplicas": groups,
        "conditions": [available],
    }
    leaders = [builders.leader_pod(lws, index, ready=ready) for index in range(groups)]
    workers = [builders.worker_pod(leader, rank, ready=ready) for leader in leaders for rank in range(1, size)]
    return view(lws, [*leaders, *workers])


def snapshot(*views: View, **fields: Any) -> Snapshot:
    return Snapshot(namespace="default", now=builders.NOW, views=views, **fields)


def rendered(
    found: Snapshot, kind: PageKind, *, facts: dict[Resource, list[JSONObject]] | None = None, **to: Any
) -> Rendering:
    address = Address(kind=kind, key=to.pop("key", KEY), **to)
    return PAGES[kind].render(found, address, PageFacts(facts or {}))


def html(shown: Rendering, region: str) -> str:
    return "".join(piece.html for piece in shown[region])


def test_most_urgent_set_comes_first_with_its_cause() -> None:
    healthy, stuck = web(metadata={"name": "fine"}), web(ready=False)
    shown = rendered(snapshot(healthy, stuck, diagnoses={KEY: STUCK}), PageKind.NOW)
    (cause,) = shown["problems"]
    assert (cause.key, [part.key for part in cause.parts[1:]]) == ("cause/LWS-E036", ["s/default/web"])
    assert [piece.key for piece in shown["healthy"]] == ["s/default/fine"]
    assert 'href="causes/LWS-E036"' in cause.html
    assert "No node has &lt;enough&gt; cpu" in cause.html
    assert cause.announcement == "web is stuck (LWS-E036): no node has <enough> cpu"


def test_sets_with_one_cause_are_one_entry() -> None:
    views = [web(ready=False, metadata={"name": f"w{number}"}) for number in range(6)]
    diagnoses = {view.key: replace(STUCK, target=view.name, title="insufficient cpu") for view in views}
    (cause,) = rendered(snapshot(*views, diagnoses=diagnoses), PageKind.NOW)["problems"]
    assert "<strong>Insufficient cpu</strong>" in cause.html
    assert cause.announcement == "6 sets: LWS-E036: Insufficient cpu"
    assert "<details>" in cause.html, "many sets are listed after a click"
    (alone,) = rendered(snapshot(views[0], diagnoses=diagnoses), PageKind.NOW)["problems"]
    assert "<details open>" in alone.html


def test_filter_shows_only_sets_in_its_state() -> None:
    found = snapshot(web(metadata={"name": "fine"}), web(ready=False), diagnoses={KEY: STUCK})
    tiles = [re.sub("<[^>]*>", "", piece.html) for piece in rendered(found, PageKind.NOW)["filters"]]
    assert tiles == ["2 Sets", "1 Problem", "1 Healthy"]
    shown = rendered(found, PageKind.NOW, state=StateFilter.HEALTHY)
    assert ("problems" in shown, [piece.key for piece in shown["healthy"]]) == (False, ["s/default/fine"])
    assert 'href=".?state=healthy"' in html(shown, "filters")


def test_line_of_a_set_has_its_image_and_accelerators() -> None:
    found = web(groups=2, size=4)
    container = {"name": "main", "image": "a.example.com/ml/vllm:v0.11", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    found.object["spec"]["leaderWorkerTemplate"]["workerTemplate"] = {"spec": {"containers": [container]}}
    line = html(rendered(snapshot(found), PageKind.NOW), "healthy")
    assert ">64 GPUs<" in line
    assert ">vllm:v0.11<" in line
    assert " 2/2<" in line


def test_healthy_set_ignores_an_earlier_diagnosis() -> None:
    view = snapshot(web(), diagnoses={KEY: STUCK}).with_diagnosis(web())
    assert view.diagnosis.verdict is Verdict.HEALTHY


def test_set_without_a_diagnosis_is_in_progress() -> None:
    told = snapshot(web(ready=False)).with_diagnosis(web(ready=False)).diagnosis
    assert (told.verdict, told.sentence) == (Verdict.PROGRESSING, "web-0 is Init:0/0 (and 3 more ranks)")
    assert cells.announcement(told) == ""


def test_group_state_follows_from_its_ranks() -> None:
    alike, mixed = web().groups[0], view(web().object, [builders.leader_pod(web().object)]).groups[0]
    assert (alike.readiness, mixed.readiness) == (Readiness.READY, Readiness.STARTING)


@pytest.mark.parametrize(
    ("code", "condition"), [(143, Readiness.ENDING), (0, Readiness.ENDING), (3, Readiness.PROBLEM)]
)
def test_pod_terminated_on_request_is_not_a_problem(code: int, condition: Readiness) -> None:
    lws = builders.leaderworkerset_object(replicas=1, size=1)
    pod = builders.leader_pod(lws, 0, ready=False)
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    ended = {"exitCode": code, "reason": "Error", "finishedAt": "2026-01-01T00:00:00Z"}
    pod["status"] = {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"terminated": ended}}]}
    assert view(lws, [pod]).groups[0].readiness is condition


def test_steps_with_commands_have_a_copy_button() -> None:
    stuck = replace(STUCK, steps=("ask who owns <node>", "lws -n default logs web"))
    html = rendered(snapshot(web(ready=False), diagnoses={KEY: stuck}), PageKind.NOW)["problems"][0].html
    assert html.count("data-copy=") == 1
    assert 'data-copy="lws -n default logs web"' in html
    assert "Ask who owns &lt;node&gt;" in html


def test_quoted_lines_of_evidence_are_one_block() -> None:
    quoting = replace(STUCK, evidence=("web-0 failed", "the last lines of web-0:", "  step 1", "  <error>"))
    shown = html(rendered(snapshot(web(ready=False), diagnoses={KEY: quoting}), PageKind.SET), "cause")
    assert "<li>web-0 failed</li><li>The last lines of web-0:</li>" in shown
    assert '<li><pre tabindex="0">step 1\n&lt;error&gt;</pre></li>' in shown


def test_totals_count_accelerators_of_all_desired_groups() -> None:
    ready = web(groups=2, size=4)
    container = {"name": "main", "image": "a", "resources": {"limits": {"nvidia.com/gpu": 8, "rdma/hca": 1}}}
    ready.object["spec"]["leaderWorkerTemplate"]["workerTemplate"] = {"spec": {"containers": [container]}}
    assert totals.accelerators([ready]) == totals.Accelerators(64, 64, 0)


def test_totals_count_accelerators_of_groups_that_are_not_ready() -> None:
    ill = web(groups=2, size=2, ready=False)
    container = {"name": "main", "image": "a", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    ill.object["spec"]["leaderWorkerTemplate"]["workerTemplate"] = {"spec": {"containers": [container]}}
    for own in ill.pods[:2]:
        own["spec"]["nodeName"] = "a"
    found = view(ill.object, ill.pods)
    assert totals.accelerators([found]) == totals.Accelerators(32, 0, 16)
    assert "32, 16 idle" in html(rendered(snapshot(found), PageKind.SET), "facts")


def test_cause_page_explains_it_and_lists_its_sets() -> None:
    found = snapshot(web(ready=False), diagnoses={KEY: STUCK})
    shown = rendered(found, PageKind.CAUSE, episode="LWS-E036")
    assert cells.sentence(BY_CODE["LWS-E036"].title) in html(shown, "head")
    assert [piece.key for piece in shown["rows"]] == ["r/default/web"]


def test_matrix_marks_where_the_revision_changes() -> None:
    lws = builders.leaderworkerset_object(replicas=3, size=1)
    pods = [builders.leader_pod(lws, index, key=key) for index, key in enumerate(("a", "a", "b"))]
    rows = rendered(snapshot(view(lws, pods)), PageKind.SET)["rows"]
    assert ["edge" in piece.html for piece in rows] == [False, False, True]


def test_the_style_has_the_glyph_of_every_state() -> None:
    style = files()["style.css"]
    for state, glyph in cells.GLYPHS.items():
        selector = "[id]" if state is Readiness.READY else f".{state.value}"
        assert f'.grid td{selector}::before {{ content: "{glyph}"; content: "{glyph}" / ""; }}' in style


def test_matrix_lists_groups_with_a_problem_above_it() -> None:
    lws = builders.leaderworkerset_object(replicas=9, size=1)
    pods = [builders.leader_pod(lws, index, ready=False) for index in range(9)]
    for own in pods:
        state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
        own["status"] = {"phase": "Running", "containerStatuses": [{"name": "main", "ready": False, "state": state}]}
    shown = rendered(snapshot(view(lws, pods)), PageKind.SET)
    assert [piece.key for piece in shown["ills"]] == [*(f"ill/{group}" for group in range(6)), "ill/more"]
    assert 'data-rank="0/0"' in shown["ills"][0].html
    assert [piece.key for piece in shown["rows"]] == [f"g/{group}" for group in range(9)], "the order is kept"
    assert all('class="ill' in piece.html for piece in shown["rows"])


def test_the_table_of_ranks_shows_use_only_if_measured() -> None:
    found = web(groups=1)
    plain = rendered(snapshot(found), PageKind.SET, format=PageForm.TABLE)
    assert html(plain, "rank-columns").count("<th") == len(ranktable.HEADER)
    usage = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "500m", "nvidia.com/gpu-memory": "3Gi"}
    measured = {"metadata": {"name": "web-0", "namespace": "default"}, "containers": [{"name": "a", "usage": usage}]}
    found.pods[0]["metadata"]["annotations"][devices.DEVICES] = '{"a": ["GPU-7"]}'
    shown = rendered(snapshot(found), PageKind.SET, format=PageForm.TABLE, facts={POD_METRICS: [measured]})
    assert html(shown, "rank-columns").endswith(
        '>GPU</th><th scope="col">GPU memory</th><th scope="col">Devices</th></tr>'
    )
    assert [piece.html.split("<td>")[-3:] for piece in shown["ranks"]] == [
        ["50% of 1</td>", "3Gi</td>", "GPU-7</td></tr>"],
        ["-</td>", "-</td>", "-</td></tr>"],
    ]


@pytest.mark.parametrize("kind", list(PageKind))
@pytest.mark.parametrize("form", [PageForm.PAGE, PageForm.TABLE])
def test_empty_pages_have_all_regions_and_a_text(kind: PageKind, form: PageForm) -> None:
    page, address = PAGES[kind], Address(kind=kind, key=KEY, format=form)
    shown = page.render(snapshot(), address, PageFacts())
    framed = page.frame(address, shown)
    assert [
        region for region in shown if region != "trouble" and f'id="{region}"' not in framed and shown[region]
    ] == []
    assert page.title(address)
    text = "\n".join(page.text(snapshot(), address, PageFacts()))
    assert text or kind is PageKind.LOGS


@pytest.mark.parametrize("kind", list(PageKind))
def test_every_page_reports_that_it_may_be_outdated(kind: PageKind) -> None:
    shown = rendered(snapshot(web(), connection_error="no answer"), kind)
    assert "no answer" in html(shown, "trouble")


def flat(pieces: Iterable[Fragment]) -> Iterator[Fragment]:
    """Yield elements and all their nested elements."""
    for piece in pieces:
        yield piece
        yield from flat(piece.parts)


@pytest.mark.parametrize("kind", list(PageKind))
@pytest.mark.parametrize("form", [PageForm.PAGE, PageForm.TABLE])
def test_keys_are_unique_and_ids_of_their_elements(kind: PageKind, form: PageForm) -> None:
    whole = seen(part("prefill", 2), part("decode", 1, ready=0))
    found = snapshot(web(), *(one for one in whole.parts), sets=[whole])
    for key in (KEY, ObjectKey("default", "split")):
        facts = {NODES: [of("a", GPUS)], PODS: [running_pod("x", "a", cpu="1")]}
        shown = rendered(found, kind, key=key, format=form, facts=facts)
        every = [*flat(piece for pieces in shown.values() for piece in pieces)]
        assert len(every) == len({piece.key for piece in every})
        for piece in every:
            assert f' id="{piece.key}"' in piece.html[: piece.html.index(">")]
            assert len(piece.frame) == 2 * len(piece.parts) + 1, "parts are in the order of the HTML"


def test_disaggregated_set_is_one_item_with_its_parts() -> None:
    whole = seen(part("prefill", 2), part("decode", 1, ready=0))
    found = snapshot(*(one for one in whole.parts), sets=[whole])
    text = [*PAGES[PageKind.NOW].text(found, Address(kind=PageKind.NOW), PageFacts())]
    assert text[0].endswith("2 LeaderWorkerSets: 2 progressing; 1 DisaggregatedSet: 1 progressing")
    (item,) = rendered(found, PageKind.NOW)["progressing"]
    assert item.key == "w/default/split"
    shown = rendered(found, PageKind.WHOLE, key=ObjectKey("default", "split"))
    assert "2 of 3 groups ready" in html(shown, "head")
    assert html(shown, "rows").count('aria-label="Pages of ') == 2, "each role has the tabs of a set"
    assert [piece.key for piece in shown["rows"]] == [f"p/{one.name}" for one in whole.parts]
    assert disaggregatedset_object()["metadata"]["name"] == "split"


def test_rollout_of_a_disaggregated_set_has_a_row_per_role() -> None:
    parts = [part("prefill", 1, revision="old"), part("prefill", 2, ready=1), part("decode", 1)]
    for one in parts:
        one.object["metadata"]["creationTimestamp"] = f"2026-01-0{1 if '-old-' in one.name else 2}T00:00:00Z"
    whole = seen(*(replace(one, created=one.object["metadata"]["creationTimestamp"]) for one in parts))
    found = snapshot(*(one for one in whole.parts), sets=[whole])
    address = parse("disaggregated/default/split/rollout", {})
    shown = page_of(address).render(found, address, PageFacts())
    assert [piece.key for piece in shown["rows"]] == ["r/prefill", "r/decode"]
    prefill = shown["rows"][0].html
    assert "1 of 2 groups ready at the latest revision" in prefill
    assert 'title="Group split-0-old-prefill/0: pending"' in prefill
    assert 'title="Group split-0-new-prefill/0: done"' in prefill
    assert 'href="sets/default/split-0-old-prefill/rollout"' in prefill
    frame = page_of(address).frame(address, shown)
    assert [*re.findall(r'href="(disaggregated/[^"]*)"', frame)] == [
        f"disaggregated/default/split{page}" for page in ("", "/rollout", "/logs", "/history")
    ]
    text = [*page_of(address).text(found, address, PageFacts())]
    assert "prefill: revision old, slice 0: 1 of 1 group ready" in text
    gone = parse("disaggregated/default/none/rollout", {})
    assert "DisaggregatedSet none does not exist" in html(page_of(gone).render(found, gone, PageFacts()), "head")


def test_logs_of_a_disaggregated_set_offer_its_roles() -> None:
    whole = seen(part("prefill", 1), part("decode", 1))
    found = snapshot(*(one for one in whole.parts), sets=[whole])
    address = parse("disaggregated/default/split/logs", {})
    shown = page_of(address).render(found, address, PageFacts())
    assert 'data-roles="decode prefill"' in html(shown, "head")
    assert 'data-source="logs/disaggregated/default/split"' in page_of(address).frame(address, shown)
    lines = [*page_of(address).text(found, address, PageFacts())]
    assert [line.partition(" ")[0] for line in lines] == ["decode/0/0", "prefill/0/0"]
    gone = parse("disaggregated/default/none/logs", {})
    assert "DisaggregatedSet none does not exist" in html(page_of(gone).render(found, gone, PageFacts()), "head")


def test_history_of_a_disaggregated_set_joins_roles() -> None:
    whole = seen(part("prefill", 1), part("decode", 1))
    found = snapshot(*(one for one in whole.parts), sets=[whole])
    records = [
        replace(FULL, namespace="default", lws=f"split-0-new-{role}", number=number)
        for role, number in (("prefill", 2), ("decode", 2), ("prefill", 1))
    ]
    address = parse("disaggregated/default/split/history", {})
    shown = page_of(address).render(found, address, PageFacts(episodes=records))
    (row,) = shown["rows"]
    assert "3 × " in row.html  # noqa: RUF001
    for role in ("prefill", "decode"):
        assert f'href="sets/default/split-0-new-{role}/history/0/2">{role}/0#2</a>' in row.html
    with pytest.raises(NoSuchPageError):
        parse("disaggregated/default/split/history/0/2", {})


def test_a_healthy_disaggregated_set_counts_all_roles() -> None:
    whole = seen(*(replace(part(name, count), up_to_date=count) for name, count in (("prefill", 2), ("decode", 1))))
    found = snapshot(*(one for one in whole.parts), sets=[whole]).disaggregatedset_with_diagnosis(whole)
    assert {one.diagnosis.verdict for one in found.parts} == {Verdict.HEALTHY}
    assert (found.diagnosis.target, found.diagnosis.verdict) == ("split", Verdict.HEALTHY)
    assert found.diagnosis.sentence == "complete"


def test_a_rollout_shows_done_and_remaining_steps() -> None:
    lws = builders.leaderworkerset_object(replicas=3, size=1, image="app:2")
    lws["status"] = {
        "observedGeneration": 1,
        "readyReplicas": 2,
        "conditions": [{"type": "UpdateInProgress", "status": "True"}],
    }
    old = builders.leader_pod(lws, 0, key="old"), builders.leader_pod(lws, 1, key="old")
    new = builders.leader_pod(lws, 2, ready=False)
    statefulset = {
        "metadata": {
            "name": "web",
            "generation": 1,
            "labels": {labels.TEMPLATE_REVISION_HASH: builders.key_of(lws)},
            "annotations": {labels.REPLICAS: "3"},
        },
        "spec": {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}},
        "status": {"observedGeneration": 1},
    }
    found = snapshot(view(lws, [*old, new]))
    shown = rendered(found, PageKind.ROLLOUT, facts={STATEFULSETS: [statefulset]})
    steps = [piece.html.partition("<td>")[2].partition("<")[0] for piece in shown["rows"]]
    assert steps == ["○ pending", "○ pending", "◐ starting"]
    assert "0/3 groups updated, 1 starting" in html(shown, "progress")
    assert [piece.key for piece in shown["steps"]]


def test_topology_shows_usage_and_where_a_group_fits() -> None:
    racks = [of("a", GPUS), of("b", GPUS | {"cpu": "1"})]
    for node, rack in zip(racks, ("r1", "r2"), strict=True):
        node["metadata"]["labels"] = {"topology.kubernetes.io/rack": rack}
    ours, others = running_pod("web-0", "a", cpu="2"), running_pod("x", "a", cpu="4")
    ours["metadata"]["labels"] = {labels.NAME: "web"}
    asking = web(size=2)
    container = {"name": "main", "image": "a", "resources": {"requests": {"cpu": "500m"}}}
    asking.object["spec"]["leaderWorkerTemplate"]["workerTemplate"] = {"spec": {"containers": [container]}}
    shown = rendered(snapshot(asking), PageKind.TOPOLOGY, facts={NODES: racks, PODS: [ours, others]})
    facts = re.findall("<dd>(.*?)</dd>", html(shown, "summary"))
    assert facts == ["2, 2 ready", "2 by topology.kubernetes.io/rack", "16 / 16"]
    assert [piece.key for piece in shown["racks"]] == ["rack/r1", "rack/r2"]
    assert fits_of(asking, racks, [ours, others]) == ["3 groups fit in all", "Fits 2", "Fits 1"]


def test_topology_shows_a_square_for_each_accelerator() -> None:
    node, other = of("a", GPUS), running_pod("x", "a")
    ours = running_pod("web-0", "a", **{"nvidia.com/gpu": "3"})
    ours["metadata"] |= {"namespace": "default", "labels": {labels.NAME: "web"}}
    other["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpu": "2"}}
    shown = rendered(snapshot(web()), PageKind.TOPOLOGY, facts={NODES: [node], PODS: [ours, other]})
    (rack,) = shown["racks"]
    squares = (
        '<rect class="s1" x="0" width="3" height="1"></rect><rect class="others" x="3" width="2" height="1"></rect>'
    )
    assert squares in rack.html
    assert 'title="a: 3 of 8 GPUs free; default/web 3; other pods 2"' in rack.html


def test_topology_counts_free_devices_by_node() -> None:
    nodes = [of("a", GPUS), of("b", GPUS)]
    over = running_pod("x", "a")
    over["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpu": "16"}}
    shown = rendered(snapshot(), PageKind.TOPOLOGY, facts={NODES: nodes, PODS: [over]})
    assert "<dt>GPUs free</dt><dd>8 / 16</dd>" in html(shown, "summary"), "a failed device does not hide free ones"


def test_topology_omits_nothing() -> None:
    nodes = [of(f"n{index:02}", GPUS) for index in range(70)]
    for index, node in enumerate(nodes):
        node["metadata"]["labels"] = {"topology.kubernetes.io/rack": f"r{index:02}"}
    views = [asking({"cpu": f"{number}m"}, size=1) for number in range(300)]
    shown = rendered(snapshot(*views), PageKind.TOPOLOGY, facts={NODES: nodes, PODS: []})
    assert len(shown["racks"]) == 70
    assert len(shown["sets"]) == 301


def fits_of(found: View, nodes: list[JSONObject], pods: list[JSONObject] | None = None) -> list[str]:
    """Return the number of groups that would fit, in total and in each domain."""
    facts = {NODES: nodes, PODS: pods or []}
    shown = rendered(snapshot(found), PageKind.TOPOLOGY, facts=facts, other=str(found.key))
    words = re.sub("<[^>]*>", "", html(shown, "fit"))
    return [words, *re.findall(">(Fits [0-9]+)<", html(shown, "racks"))]


def test_topology_names_the_nodes_that_block_a_group() -> None:
    small, big = {"cpu": "1", "pods": "110"}, {"cpu": "8", "pods": "110"}
    nodes = [of(f"n{index}", small) for index in range(5)] + [of("cordoned", big), of("held", big)]
    nodes[5]["spec"] = {"unschedulable": True}
    (words, _) = fits_of(asking({"cpu": "4"}, size=2), nodes, [running_pod("other", "held", cpu="6")])
    assert words == "No other group fits: cpu: held, n0, n1 and 3 more; taint: cordoned"
    (words, _) = fits_of(asking({"cpu": "5"}, size=2), [of("only", big)])
    assert words == "No other group fits: too few nodes have enough space, or their domains are in use"


def test_topology_shows_zones_next_to_racks() -> None:
    node = of("a", GPUS)
    node["metadata"]["labels"] = {"topology.kubernetes.io/rack": "r1", "topology.kubernetes.io/zone": "z1"}
    facts = {NODES: [node], PODS: []}
    (rack,) = rendered(snapshot(), PageKind.TOPOLOGY, facts=facts)["racks"]
    assert rack.key == "rack/z1 / r1"
    (row,) = rendered(snapshot(), PageKind.TOPOLOGY, facts=facts, format=PageForm.TABLE)["nodes"]
    assert "<td>z1 / r1</td>" in row.html


def asking(amounts: JSONObject, *, size: int, **metadata: Any) -> View:
    """Return a LeaderWorkerSet without pods, whose containers have these limits and no requests."""
    container = {"name": "main", "image": "a", "resources": {"limits": amounts}}
    lws = builders.leaderworkerset_object(replicas=1, size=size, metadata=metadata)
    lws["spec"]["leaderWorkerTemplate"]["workerTemplate"] = {"spec": {"containers": [container]}}
    return view(lws, [])


@pytest.mark.parametrize(("nodes", "groups"), [(2, "Fits 0"), (4, "Fits 1"), (9, "Fits 2")])
def test_topology_reads_missing_requests_from_the_limits(nodes: int, groups: str) -> None:
    listed = [of(f"n{index}", {"cpu": "8", "pods": "110", "nvidia.com/gpu": "8"}) for index in range(nodes)]
    assert fits_of(asking({"nvidia.com/gpu": 8}, size=4), listed)[1:] == [groups]


def test_topology_gives_exclusive_groups_their_own_domain() -> None:
    listed = [of(f"n{index}", {"cpu": "8", "pods": "110"}) for index in range(3)]
    for node in listed:
        node["metadata"]["labels"] = {"rack": node["metadata"]["name"]}
    free = asking({"cpu": "1"}, size=2, annotations={labels.EXCLUSIVE_TOPOLOGY: "rack"})
    assert fits_of(free, listed) == ["3 groups fit in all", "Fits 1", "Fits 1", "Fits 1"]
    leader = builders.leader_pod(free.object)
    leader["spec"]["nodeName"] = "n1"
    assert fits_of(view(free.object, [leader]), listed) == ["2 groups fit in all", "Fits 1", "Fits 0", "Fits 1"]


def test_topology_cost_does_not_multiply_by_sets() -> None:
    def cost(sets: int, pods: int) -> int:
        found = snapshot(*(web(metadata={"name": f"w{index}"}) for index in range(sets)))
        facts = {NODES: [of("a", GPUS)], PODS: [running_pod(f"p{index}", "a", cpu="1m") for index in range(pods)]}
        return work.lines(lambda: rendered(found, PageKind.TOPOLOGY, facts=facts))

    assert cost(20, 40) - cost(20, 20) < 1.5 * (cost(1, 40) - cost(1, 20))


def test_topology_reports_unknown_usage_without_pods() -> None:
    shown = rendered(snapshot(web()), PageKind.TOPOLOGY, facts={NODES: [of("a", GPUS)]})
    assert "Free amounts are unknown" in html(shown, "summary")
    assert shown["fit"] == []


@pytest.mark.parametrize(
    "path",
    [
        "x",
        "sets",
        "sets/a",
        "sets/A/b",
        "sets/a/b/c",
        "sets/a/-b",
        "disaggregated/a",
        "topology/x",
        "sets//b",
        "/",
        "sets/a/b/history/0",
        "sets/a/b/history/0/x",
        "sets/a/b/history/../1",
        "a/history/0/1",
    ],
)
def test_unknown_addresses_have_no_page(path: str) -> None:
    with pytest.raises(NoSuchPageError):
        parse(path, {})


@pytest.mark.parametrize("query", [{"by": "x"}, {"as": "x"}, {"by": ""}, {"state": "x"}])
def test_unknown_queries_have_no_page(query: dict[str, str]) -> None:
    with pytest.raises(NoSuchPageError):
        parse("sets/a/b", query)


def test_log_download_has_no_server_page() -> None:
    with pytest.raises(NoSuchPageError):
        parse("sets/a/b/logs", {"as": "file"})


def test_ranks_are_grouped_by_racks_of_their_nodes() -> None:
    lws = builders.leaderworkerset_object(replicas=2, size=1)
    pods = [builders.leader_pod(lws, index) for index in range(2)]
    pods[0]["spec"]["nodeName"] = "a"
    nodes = [of("a", GPUS) | {"metadata": {"name": "a", "labels": {"topology.kubernetes.io/rack": "r1"}}}]
    found = snapshot(view(lws, pods))
    shown = rendered(found, PageKind.SET, facts={NODES: nodes}, arrangement=Arrangement.RACK)
    assert [piece.key for piece in shown["rows"]] == ["g/r1", "g/without a label topology.kubernetes.io/rack"]
    unknown = rendered(found, PageKind.SET, arrangement=Arrangement.RACK)
    assert [piece.key for piece in unknown["rows"]] == ["g/the rack is unknown"]


def test_equal_failures_are_one_row() -> None:
    records = [replace(FULL, number=number, failure=f"CUDA out of memory at step {number}") for number in range(1, 9)]
    address = Address(kind=PageKind.HISTORY, key=KEY)
    shown = PAGES[PageKind.HISTORY].render(snapshot(), address, PageFacts(episodes=[*records, BARE]))
    assert [piece.key for piece in shown["rows"]] == ["e/1/1", "e/0/8"]
    row = shown["rows"][1].html
    assert "<strong>8 × CUDA out of memory at step 8</strong>" in row  # noqa: RUF001
    assert 'href="sets/prod/web/history/0/8?with=0/7"' in row


def test_recorded_failures_are_listed_with_the_newest_first() -> None:
    facts = PageFacts(episodes=[FULL, BARE])
    address = Address(kind=PageKind.HISTORY, key=KEY)
    shown = PAGES[PageKind.HISTORY].render(snapshot(), address, facts)
    assert [piece.key for piece in shown["rows"]] == ["e/1/1", "e/0/3"]
    assert 'href="sets/prod/web/history/0/3"' in shown["rows"][1].html
    one = replace(address, episode="0/3")
    whole = "".join(html(PAGES[PageKind.HISTORY].render(snapshot(), one, facts), region) for region in REGIONS)
    for words in ("1, failed first", "Error, 143", "run 2 of 2), the last 9 lines", "⚠ Warning", "spec.x: 1 -&gt; 2"):
        assert words in whole
    text = list(PAGES[PageKind.HISTORY].text(snapshot(), one, facts))
    assert text[-10:] == ["Log of rank 1 (web-0-1, app, run 2 of 2), the last 9 lines:", *(f"  {n}" for n in range(9))]


@pytest.mark.parametrize(
    ("facts", "episode", "said"),
    [
        (PageFacts(), "", "not recorded"),
        (PageFacts(), "0/3", "not recorded"),
        (PageFacts(episodes=[]), "", "No failures are recorded."),
        (PageFacts(episodes=[BARE]), "0/3", "web/0#3 does not exist"),
    ],
)
def test_missing_failure_record_gives_the_reason(facts: PageFacts, episode: str, said: str) -> None:
    address = Address(kind=PageKind.HISTORY, key=KEY, episode=episode)
    assert said in html(PAGES[PageKind.HISTORY].render(snapshot(), address, facts), "circumstances")
    assert said in "\n".join(PAGES[PageKind.HISTORY].text(snapshot(), address, facts))


@pytest.mark.parametrize("path", ["sets/a/b/history/0/1", "sets/a/b/history"])
def test_address_of_a_recorded_failure_round_trips(path: str) -> None:
    assert parse(path, {}).path() == path


@pytest.mark.parametrize("kind", list(PageKind))
def test_address_of_every_page_round_trips(kind: PageKind) -> None:
    is_about_a_set = kind not in (PageKind.NOW, PageKind.TOPOLOGY, PageKind.CAUSE)
    address = Address(kind=kind, key=KEY) if is_about_a_set else Address(kind=kind)
    if kind is PageKind.CAUSE:
        address = Address(kind=kind, episode="LWS-E071")
    assert parse(address.path(), {}) == address
    assert meta.name(web().object) == KEY.name


def test_complete_groups_are_counted_alike_on_all_pages() -> None:
    complete = {"observedGeneration": 1, "conditions": [{"type": "Complete", "status": "True"}]}
    own = part("prefill", 2, ready=0)
    own = replace(own, object=own.object | {"status": complete})
    whole = seen(own)
    shown = snapshot(*whole.parts, sets=[whole])
    of_part = rendered(replace(shown, sets=[]), PageKind.SET, key=own.key)
    address = parse("disaggregated/default/split", {})
    rows = page_of(address).render(shown, address, PageFacts())["rows"]
    overview = rendered(snapshot(*whole.parts), PageKind.NOW)["complete"]
    for text in (html(of_part, "head"), rows[0].html, overview[0].html):
        assert "2 of 2 groups complete" in text
