"""Takes screenshots of each page for the documentation, in light and dark mode, for desktops and phones.

`python -m tests.browser` writes them to docs/how-to/dashboard; a test takes all of them again.
"""

import base64
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from tests import builders
from tests.browser import fleet
from tests.browser.conftest import chromium, playwright
from tests.browser.fleet import NAMES
from tests.dashboardhouse import NAMESPACE, ServedDashboard, Tokens, open_house
from tests.integration.clusters import objects

from kuberuntime.objects import timestamps
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, CORE_EVENTS, PODS, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.episode import Episode, Outcome, RecordedContainer, RecordedRank, RunTermination
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.dashboard.pages.header import ClusterIdentity
from lwsctl.dashboard.pages.timeline import READING

FOLDER: Final = Path("docs/how-to/dashboard")
FAILED: Final = "mixtral-8x22b-00"
"""The LeaderWorkerSet whose last rank crashes."""

SETS: Final = 24
PAGES: Final = {
    "now": "",
    "now-filtered": "?state=healthy",
    "now-table": "?as=table",
    "set": f"sets/{NAMES[1]}/{FAILED}",
    "set-by-node": f"sets/{NAMES[1]}/{FAILED}?by=node",
    "set-table": f"sets/{NAMES[1]}/{FAILED}?as=table",
    "rollout": "sets/default/decode/rollout",
    "logs": f"sets/{NAMES[1]}/{FAILED}/logs",
    "history": f"sets/{NAMES[1]}/{FAILED}/history",
    "episode": f"sets/{NAMES[1]}/{FAILED}/history/3/2",
    "two-episodes": f"sets/{NAMES[1]}/{FAILED}/history/3/2?with=2/1",
    "topology": f"topology?set={NAMES[1]}/{FAILED}",
    "topology-table": "topology?as=table",
    "disaggregated": "disaggregated/default/chat",
    "disaggregated-rollout": "disaggregated/default/chat/rollout",
    "cause": "causes/LWS-E071",
    "not-found": "sets/default/decoder",
}
LOGIN: Final = "login"
"""The screenshot of the login page, which only a shared dashboard has."""

SCHEMES: Final = ("light", "dark")
LOG: Final = (
    "step 409 loss 2.15",
    "step 410 loss 2.14",
    "step 411 loss 2.13",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
)
SIZES: Final = {1280: 720, 390: 760}
"""The screenshot widths, with their heights."""

QUALITY: Final = 30
MOST_BYTES: Final = 1_700_000
"""The maximum total size of the screenshots, in bytes."""


def names() -> Iterator[str]:
    """Yield the names of all screenshots."""
    for page in (*PAGES, LOGIN):
        for scheme in SCHEMES:
            yield from (f"{page}-{scheme}-{width}.webp" for width in SIZES)


async def take(folder: Path) -> None:
    """Take all screenshots."""
    async with playwright.async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        async with open_house(actions=True) as house:
            await furnish(house)
            page = await (await browser.new_context()).new_page()
            await page.goto(house.dashboard.link)
            await page.wait_for_url(house.base)
            for name, path in PAGES.items():
                await picture(page, house.base + path, folder / name, settled)
        async with open_house(tokens=Tokens()) as house:
            page = await (await browser.new_context()).new_page()
            await picture(page, house.base, folder / LOGIN, lambda page: page.locator("#token").wait_for())
        await browser.close()


async def picture(page: Any, address: str, target: Path, wait: Callable[[Any], Awaitable[None]]) -> None:
    """Take screenshots of one page in each color scheme and size."""
    camera = await page.context.new_cdp_session(page)
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme)
        for width, height in SIZES.items():
            await page.set_viewport_size({"width": width, "height": height})
            await page.goto(address)
            await wait(page)
            target.with_name(f"{target.name}-{scheme}-{width}.webp").write_bytes(await shot(camera))


async def settled(page: Any) -> None:
    """Wait until the page is live and events are loaded. If a rank is selected, wait for its panel or logs."""
    await page.locator("#pulse.live").wait_for()
    await page.locator(f"text={READING}").wait_for(state="detached")
    shown = page.locator("#pane, #lines")
    if await page.locator("#title[data-failed]").count() and await shown.count():
        await shown.locator("h2, p:not(.hint)").first.wait_for()


async def shot(camera: Any) -> bytes:
    """Return a screenshot of the page in WebP format."""
    found = await camera.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    return base64.b64decode(found["data"])


async def furnish(house: ServedDashboard) -> None:
    """Create workloads, a rollout, a DisaggregatedSet, and the logs, events and records of a failing workload."""
    house.dashboard.about = ClusterIdentity(cluster="west-1", context="prod", user="ann", version="0.2.0")
    await fleet.furnish(house, SETS)
    await house.put_set("decode", replicas=24, size=4, image="vllm/vllm-openai:v0.11.0")
    await house.put_whole("chat", {"prefill": 6, "decode": 8}, size=2)
    stamp = timestamps.render(house.model.clock.now())
    house.transport.logs = {
        f"{FAILED}-3": f"{stamp} step 411 loss 2.13\n{stamp} NCCL timeout: rank 3 does not answer\n".encode(),
        f"{FAILED}-3-3": "".join(f"{stamp} {line}\n" for line in LOG).encode(),
    }
    for minutes, reason in enumerate(("RecreateGroup", "GroupsUpdating", "RecreateGroup")):
        moment = house.model.clock.now() - timedelta(minutes=4 + 15 * minutes)
        await house.client.create(CORE_EVENTS, _event(reason, timestamps.render(moment)))

    async def recorded(key: ObjectKey) -> list[Episode]:
        return list(records(key, house.model.clock.now()))

    house.model.read_episodes = recorded
    await roll(house, "decode", groups=24)
    await house.shows(decode_23_3="Running")
    await house.model.diagnose()


def records(key: ObjectKey, now: datetime) -> Iterator[Episode]:
    """Yield three recorded failures of a group, of which two are equal."""
    failures = (("3", 2, 31, LOG[-1]), ("3", 1, 34, LOG[-1]), ("2", 1, 1440, "KeyError: 'MASTER_ADDR'"))
    for group, number, minutes, failure in failures:
        own = RecordedContainer(
            name="main", restarts=1, ends=(RunTermination(exit_code=137, reason="Error"),), logs=((*LOG[:-1], failure),)
        )
        peer = RecordedContainer(name="main", ends=(RunTermination(exit_code=143),), logs=(("step 411 loss 2.13",),))
        pods = [f"{key.name}-{group}", *(f"{key.name}-{group}-{rank}" for rank in range(1, 4))]
        ranks = tuple(
            RecordedRank(rank=at, pod=pod, node=f"gpu-0{at}", containers=(own if at == 3 else peer,))
            for at, pod in enumerate(pods)
        )
        yield Episode(
            namespace=key.namespace,
            lws=key.name,
            group=group,
            number=number,
            outcome=Outcome.RECREATED,
            time=timestamps.render(now - timedelta(minutes=minutes)),
            first_rank=3,
            failed_pod=pods[3],
            failure=f"main: exit code 137: {failure}",
            recreations=number,
            recreate_after=timestamps.render(now - timedelta(minutes=minutes - 1)),
            ranks=ranks,
        )


async def roll(house: ServedDashboard, name: str, *, groups: int) -> None:
    """Update the second half of the groups to a newer revision. These groups become ready one after the other."""
    key = ObjectKey(NAMESPACE, name)
    lws = await house.client.get(LEADERWORKERSETS, key)
    for number, image in enumerate(("vllm/vllm-openai:v0.10.2", "vllm/vllm-openai:v0.11.0"), 1):
        own = objects.lws(name, replicas=groups, size=4, image=image) | {"metadata": lws["metadata"]}
        await house.client.create(CONTROLLER_REVISIONS, builders.revision(own, key=f"r{number}", number=number))
    labeled = {labels.NAME: name, labels.TEMPLATE_REVISION_HASH: "r2"}
    template = {"metadata": {"labels": {labels.NAME: name}}, "spec": objects.pod_template()["spec"]}
    spec = {
        "replicas": groups,
        "serviceName": name,
        "selector": {"matchLabels": {labels.NAME: name}},
        "template": template,
    }
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labeled}
    await house.client.create(
        STATEFULSETS, {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}
    )
    moment = house.model.clock.now()
    updated = range(groups - 1, groups // 2, -1)
    for step, group in enumerate(updated):
        later = timestamps.render(moment + timedelta(seconds=7 * (step + step % 3) + 20))
        for pod in (f"{name}-{group}", *(f"{name}-{group}-{rank}" for rank in range(1, 4))):
            change = {"metadata": {"labels": {labels.TEMPLATE_REVISION_HASH: "r2"}}}
            await house.client.patch(PODS, ObjectKey(NAMESPACE, pod), change, kind="merge", manager="test")
            is_last = group == updated[-1] and pod.endswith("-3")
            ready = {"type": "Ready", "status": str(not is_last), "lastTransitionTime": later}
            await house.set_pod(pod, {"phase": "Running", "conditions": [ready]})
    updating = {"type": "UpdateInProgress", "status": "True", "reason": "x", "message": ""}
    conditions = [updating | {"lastTransitionTime": timestamps.render(moment - timedelta(minutes=3))}]
    status = {"conditions": conditions, "updatedReplicas": len(updated), "readyReplicas": groups - 1}
    await house.client.patch(
        LEADERWORKERSETS, key, {"status": status}, kind="merge", subresource="status", manager="test"
    )


def _event(reason: str, stamp: str) -> JSONObject:
    about = {"kind": "LeaderWorkerSet", "namespace": NAMES[1], "name": FAILED}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{FAILED}.{reason.lower()}.{stamp[11:16].replace(':', '')}", "namespace": NAMES[1]},
        "involvedObject": about,
        "type": "Normal",
        "reason": reason,
        "message": "group 3",
        "lastTimestamp": stamp,
    }
