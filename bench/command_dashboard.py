"""Measures the dashboard in a browser: first paint, idle requests, bytes during a rollout, and latency.

    python -m bench.command dashboard [--parts small large] [--groups 1000] [--size 8]

All of it runs in one process with an API server in memory, and a browser next to it: the numbers are those of a busy
machine, as `load` shows. It needs a Chromium (LWS_CHROMIUM names one).
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "packages/leaderworkerset")]

from tests.browser.conftest import chromium, playwright  # noqa: E402
from tests.dashboardhouse import READY, OddTransport, ServedDashboard, api_server, serving  # noqa: E402

from kuberuntime.client.client import Client  # noqa: E402
from lwsctl.dashboard.livemodel import LiveModel  # noqa: E402
from lwsctl.dashboard.subscriptions import Subscriptions  # noqa: E402
from lwsctl.dashboard.webserver import Dashboard  # noqa: E402
from lwsctl.diagnosis.observed import Commands  # noqa: E402

REST = 20.0
"""The time in seconds without a change during which requests are counted."""

ROLL = 25.0
"""The time in seconds in which 60 groups are rolled out."""

REPETITIONS = 5

SHOWN = """id => new Promise(resolve => {
    const painted = () => setTimeout(() => resolve(Date.now()))
    const look = () => document.getElementById(id).className === "problem" ? painted() : requestAnimationFrame(look)
    look()
})"""
"""Returns the time after the first frame in which a rank has a problem."""

PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


def report(measurement: str, **numbers: float) -> None:
    """Print one line."""
    rounded = {name: round(value, 1) for name, value in numbers.items()}
    print(json.dumps({"measurement": measurement, **rounded, "load": round(os.getloadavg()[0], 1)}), flush=True)


async def paint(page: Any, address: str) -> float:
    """Open a page. Return the milliseconds until the first paint."""
    await page.goto(address)
    await page.wait_for_function(f"({PAINT}) !== null")
    return float(await page.evaluate(PAINT))


async def small(house: ServedDashboard, page: Any) -> None:
    """Measure a cluster of 60 groups while it is idle and during a rollout."""
    # Without it, the page opens the stream itself, so that its bytes are counted.
    await page.context.add_init_script("delete globalThis.SharedWorker")
    report("dashboard, 60 groups", first_paint_ms=await paint(page, house.base))
    camera = await page.context.new_cdp_session(page)
    await camera.send("Network.enable")
    sums = {"bytes": 0, "requests": 0}
    camera.on("Network.dataReceived", lambda event: sums.update(bytes=sums["bytes"] + event["dataLength"]))
    camera.on("Network.requestWillBeSent", lambda _: sums.update(requests=sums["requests"] + 1))
    await asyncio.sleep(2)
    sums.update(bytes=0, requests=0)
    await asyncio.sleep(REST)
    report("dashboard at rest", seconds=REST, requests=sums["requests"], bytes=sums["bytes"])
    for path, title in (("", "Now"), ("sets/default/web/rollout", "Rollout")):
        await page.goto(house.base + path)
        await page.locator("#pulse.live").wait_for()
        sums.update(bytes=0)
        for group in range(60):
            await house.set_pod(f"web-{group}", {"phase": "Pending", "conditions": []})
            await asyncio.sleep(ROLL / 120)
            await house.set_pod(f"web-{group}", READY)
            await asyncio.sleep(ROLL / 120)
        report(f"dashboard, 60 groups roll, {title}", seconds=ROLL, kilobytes=sums["bytes"] / 1000)


async def large(house: ServedDashboard, page: Any, groups: int, size: int) -> None:
    """Measure the first paint of a set with many groups, and the time from a pod change to its frame."""
    paints = [await paint(page, house.base + "sets/default/large") for _ in range(REPETITIONS)]
    await page.locator("#pulse.live").wait_for()
    size_of_page = await page.evaluate("performance.getEntriesByType('navigation')[0].decodedBodySize")
    delays = []
    for group in range(REPETITIONS):
        frame = asyncio.create_task(page.evaluate(SHOWN, f"c/{group}/1"))
        await asyncio.sleep(3)  # the cluster is idle
        began = time.time()
        await house.crash(f"large-{group}-1")
        delays.append(await frame - began * 1000)
    name = f"dashboard, {groups} groups of {size}"
    numbers = {"first_paint_ms": paints, "change_shown_ms": delays}
    medians = {key: statistics.median(values) for key, values in numbers.items()}
    worst = {f"worst_{key}": max(values) for key, values in numbers.items()}
    report(name, **medians, **worst, page_kilobytes=size_of_page / 1000)


async def fill(transport: OddTransport, part: str, groups: int, size: int) -> None:
    """Create a set and its pods before the dashboard starts, so that it does not display each creation."""
    client = Client(transport)
    model = LiveModel(client, "", Commands())
    house = ServedDashboard(client, model, Dashboard(model, Subscriptions(model)), None, transport)
    if part == "small":
        await house.put_set("web", replicas=60, size=2)
    else:
        await house.put_set("large", replicas=groups, size=size)


async def measure(parts: list[str], groups: int, size: int) -> None:
    """Measure the clusters with a separate browser for each cluster."""
    async with playwright.async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for part in parts:
            async with api_server() as transport:
                await fill(transport, part, groups, size)
                async with serving(transport) as house:
                    page = await (await browser.new_context()).new_page()
                    page.set_default_timeout(120_000)
                    await page.goto(house.dashboard.link)
                    await page.wait_for_url(house.base)
                    await (small(house, page) if part == "small" else large(house, page, groups, size))
        await browser.close()


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--parts", nargs="+", choices=("small", "large"), default=["small", "large"])
    options = parser.parse_args()
    asyncio.run(measure(options.parts, options.groups, options.size))
