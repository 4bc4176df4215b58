"""Creates the situations in a table on real nodes, and samples the `lws` output from the first second."""

import json
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Final

from tests.node import registry
from tests.node.cluster import NodeCluster
from tests.node.conftest import namespace
from tests.node.place import Place
from tests.node.situations import recording
from tests.node.situations.refused import REFUSED
from tests.node.situations.situation import LABEL, STUCK, Sample, Situation, errors, sample, sets, text_of

SECONDS: Final = 60.0
"""The duration of sampling after the causes of all situations are visible."""

PATIENCE: Final = 150.0
"""The timeout until the cause of the next situation is visible on a busy machine."""

AT_ONCE: Final = 4
LISTED: Final = "apis/leaderworkerset.x-k8s.io/v1/leaderworkersets?labelSelector=" + LABEL
GAVE_UP: Final = 1


@contextmanager
def registries(nodes: NodeCluster) -> Iterator[None]:
    """Run a registry without images on each machine."""
    for machine in nodes.machines:
        machine.start("registry", [sys.executable, registry.__file__])
    try:
        yield
    finally:
        for machine in nodes.machines:
            machine.kill("registry")


@contextmanager
def situations(nodes: NodeCluster, table: Mapping[str, Situation]) -> Iterator[dict[str, Place]]:
    """Create all situations in a table, each in a separate namespace."""
    with ExitStack() as stack:
        if table is REFUSED:
            stack.enter_context(registries(nodes))
        places = {name: stack.enter_context(namespace(nodes)) for name in table}
        for name, obj in sets(table):
            for key, value in table[name].labels.items():
                nodes.kubectl("label", "namespace", places[name].name, f"{key}={value}")
            stack.callback(remove, places[name], name, table[name])
            places[name].apply(*table[name].objects, obj)
        yield places


def remove(place: Place, name: str, situation: Situation) -> None:
    """Remove objects outside the namespace, and objects that could block the deletion of the namespace."""
    place.kubectl("delete", "lws", name, "--wait=false", "--ignore-not-found")
    if situation.then and place.get("LeaderWorkerSet", name):
        place.kubectl("patch", "lws", name, "--type=merge", '--patch={"metadata":{"finalizers":null}}')
    if situation.objects:
        listed = {"apiVersion": "v1", "kind": "List", "items": situation.objects}
        place.kubectl("delete", "--filename=-", "--wait=false", "--ignore-not-found", text=json.dumps(listed))


def samples(nodes: NodeCluster, table: Mapping[str, Situation], places: Mapping[str, Place]) -> dict[str, list[Sample]]:
    """Repeatedly sample all situations until the cause of each is visible, and then for one minute."""
    series: dict[str, list[Sample]] = {name: [] for name in table}
    names = {place.name: name for name, place in places.items()}
    any_place, continued = next(iter(places.values())), set[str]()
    began = time.monotonic()
    end, before, shown = began + PATIENCE, statuses(nodes), 0
    while (now := time.monotonic()) < end:
        text = any_place.ended("explain", "--all-namespaces", f"--selector={LABEL}", "--output=json").stdout
        after = statuses(nodes)
        for item in json.loads(text)["items"]:
            if (key := item["namespace"]) in before.keys() & after.keys() & names.keys():
                series[names[key]].append(sample(now - began, item, before[key], after[key]))
                if series[names[key]][-1].code in table[names[key]].codes:
                    recording.record(nodes.api, key, names[key], table[names[key]])
        for name in available(series) - continued:
            continued.add(name)
            for words in table[name].then:
                places[name].kubectl(*words)
        count = sum(is_shown(table[name], series[name]) for name in table)
        if count > shown:
            shown, end = count, time.monotonic() + (SECONDS if count == len(table) else PATIENCE)
        before = after
        time.sleep(1)
    return series


def statuses(nodes: NodeCluster) -> dict[str, dict[str, object]]:
    """Return the LeaderWorkerSets of the situations by namespace."""
    return {obj["metadata"]["namespace"]: obj for obj in nodes.api.read(LISTED)["items"]}


def available(series: Mapping[str, list[Sample]]) -> set[str]:
    """Return the names of the situations whose LeaderWorkerSet became available."""
    return {name for name, taken in series.items() if any(moment.is_available for moment in taken)}


def is_shown(situation: Situation, taken: list[Sample]) -> bool:
    """Return whether a sample contains a cause of the situation."""
    return any(moment.code in situation.codes for moment in taken)


def wrong_answers(place: Place, name: str, situation: Situation) -> list[str]:
    """Return incorrect command output: the exit code of `lws wait`, or the quoted line."""
    wrong = []
    if situation.gives_up:  # on a busy machine, a container can run for longer than its previous runs before it crashes
        done = place.ended("wait", name, "--fail-fast", "--ready-for=1m", "--timeout=50s")
        answer = done.stdout + done.stderr
        if done.returncode != GAVE_UP or not ("is stuck" in answer or "is crashing" in answer):
            wrong.append(f"wait: {done.returncode}: {answer}")
    shown = place.ended("get", name).stdout
    rows = (line.split() for line in shown.splitlines())
    if (
        situation.verdicts == STUCK
        and not situation.keeps_running
        and any(row[:1] == [name] and row[1] != "0" for row in rows)
    ):
        wrong.append(f"get: {shown}")
    if situation.printed:
        texts: list[str] = []
        try:
            place.until(lambda: quoted(place, name, situation.printed, texts), situation.printed, PATIENCE)
        except AssertionError:
            wrong.append(f"never {situation.printed!r}, at last {texts[-1]!r}")
    return wrong


def quoted(place: Place, name: str, line: str, texts: list[str]) -> bool:
    """Return whether the diagnosis of one LeaderWorkerSet quotes a line. Store the diagnosis."""
    (item,) = json.loads(place.ended("explain", name, "--output=json").stdout)["items"]
    texts.append(json.dumps(item))
    return line in texts[-1] and bool(text_of(item))


def check(nodes: NodeCluster, table: Mapping[str, Situation]) -> None:
    """Create all situations in a table at once. Fail with a list of all incorrect samples and output."""
    with situations(nodes, table) as places:
        series = samples(nodes, table, places)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = pool.map(lambda name: wrong_answers(places[name], name, table[name]), table)
            wrong = {
                name: [*errors(table[name], series[name]), *found] for name, found in zip(table, answers, strict=True)
            }
    texts = [f"{name}:\n  " + "\n  ".join(found) for name, found in wrong.items() if found]
    assert not texts, f"{len(texts)} of {len(table)} situations:\n" + "\n".join(texts)
