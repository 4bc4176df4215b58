"""The pictures of every page for the documentation: light and dark, on a desk and on a phone, of a cluster in memory.

`python -m tests.browser` writes them to docs/how-to/dashboard; a test takes all of them again.
"""

import base64
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace
from tests.browser.conftest import chromium, playwright
from tests.dashboardhouse import NAMESPACE, House, Tokens, open_house
from tests.integration.clusters import objects
from tests.unit.leaderworkerset.cli.views.test_episodetable import FULL

from kuberuntime.objects import timestamps
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CORE_EVENTS, PODS, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.episode import Episode
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.dashboard.pages.header import ClusterIdentity
from leaderworkerset.dashboard.pages.timeline import READING

FOLDER: Final = Path("docs/how-to/dashboard")
PAGES: Final = {
    "now": "",
    "set": "sets/default/train",
    "rollout": "sets/default/decode/rollout",
    "logs": "sets/default/train/logs",
    "history": "sets/default/train/history",
    "episode": "sets/default/train/history/3/2",
    "two-episodes": "sets/default/train/history/3/2?with=3/1",
    "topology": "topology",
    "disaggregated": "disaggregated/default/chat",
    "cause": "causes/LWS-E071",
    "not-found": "sets/default/trian",
}
LOGIN: Final = "login"
"""The picture of the login page, which only a shared dashboard has."""

SCHEMES: Final = ("light", "dark")
SIZES: Final = {1280: 720, 390: 760}
"""The widths of pictures, with their heights."""

QUALITY: Final = 30
MOST_BYTES: Final = 1_000_000
"""Bytes of all pictures together."""


def names() -> Iterator[str]:
    """Yield the names of all pictures."""
    for page in (*PAGES, LOGIN):
        for scheme in SCHEMES:
            yield from (f"{page}-{scheme}-{width}.webp" for width in SIZES)


async def take(folder: Path) -> None:
    """Take all pictures."""
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
    """Take the pictures of one page in each scheme and size."""
    camera = await page.context.new_cdp_session(page)
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme)
        for width, height in SIZES.items():
            await page.set_viewport_size({"width": width, "height": height})
            await page.goto(address)
            await wait(page)
            target.with_name(f"{target.name}-{scheme}-{width}.webp").write_bytes(await shot(camera))


async def settled(page: Any) -> None:
    """Wait until the page is live, events are read, and the panel or the logs are filled if a rank is selected."""
    await page.locator("#pulse.live").wait_for()
    await page.locator(f"text={READING}").wait_for(state="detached")
    if await page.locator("#title[data-failed]").count():
        await page.locator("#pane h2, #lines p").first.wait_for()


async def shot(camera: Any) -> bytes:
    """Return a picture of the page, as WebP."""
    found = await camera.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    return base64.b64decode(found["data"])


async def furnish(house: House) -> None:
    """Create ready sets, a rolling set and a failing set."""
    house.dashboard.about = ClusterIdentity(cluster="west-1", context="prod", user="ann", version="0.2.0")
    await house.put_set("decode", replicas=24, size=4)
    await house.put_set("prefill", replicas=12, size=8)
    await house.put_whole("chat", {"prefill": 6, "decode": 8}, size=2)
    await house.put_set("train", replicas=4, size=8, ready=3)
    await house.crash("train-3-5", 137, "CUDA error: out of memory")
    await house.crash("train-3", 3, "NCCL: rank 5 does not answer", restarts=1)
    now = house.model.clock.now()
    stamp = timestamps.render(now)
    house.transport.logs = {
        "train-3": f"{stamp} step 411 loss 2.13\n{stamp} NCCL timeout: rank 5 does not answer\n".encode(),
        "train-3-5": f"{stamp} step 411 loss 2.13\n{stamp} CUDA error: out of memory\n".encode(),
    }
    for reason, kind in (("RecreateGroup", "Normal"), ("BackOff", "Warning"), ("GroupsUpdating", "Normal")):
        await house.client.create(CORE_EVENTS, _event(reason, kind, stamp))

    async def recorded(_: ObjectKey) -> list[Episode]:
        own = replace(FULL, lws="train", namespace="default", group="3", number=2, time=stamp, notes=())
        return [own, replace(own, number=1, failure="app: exit code 137")]

    house.model.read_episodes = recorded
    await roll(house, "decode", groups=24)
    await house.shows(prefill_11_7="Running", train_3="CrashLoopBackOff", train_3_5="CrashLoopBackOff")
    await house.model.diagnose()


async def roll(house: House, name: str, *, groups: int) -> None:
    """Move the second half of the groups to a newer revision, ready one after the other."""
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
    for step, group in enumerate(range(groups - 1, groups // 2, -1)):
        pod, later = f"{name}-{group}", timestamps.render(moment + timedelta(seconds=7 * (step + step % 3) + 20))
        change = {"metadata": {"labels": {labels.TEMPLATE_REVISION_HASH: "r2"}}}
        await house.client.patch(PODS, ObjectKey(NAMESPACE, pod), change, kind="merge", manager="test")
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": later}
        await house.set_pod(pod, {"phase": "Running", "conditions": [ready]})
    key, updating = (
        ObjectKey(NAMESPACE, name),
        {"type": "UpdateInProgress", "status": "True", "reason": "x", "message": ""},
    )
    status = {"conditions": [updating | {"lastTransitionTime": timestamps.render(moment)}]}
    await house.client.patch(
        LEADERWORKERSETS, key, {"status": status}, kind="merge", subresource="status", manager="test"
    )


def _event(reason: str, kind: str, stamp: str) -> JSONObject:
    about = {"kind": "LeaderWorkerSet", "namespace": "default", "name": "train"}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"train.{reason.lower()}", "namespace": "default"},
        "involvedObject": about,
        "type": kind,
        "reason": reason,
        "message": "group 3",
        "lastTimestamp": stamp,
    }
