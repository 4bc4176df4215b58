"""`python -m tests.browser` takes the pictures of docs/how-to/dashboard.md anew, of a cluster in memory."""

import asyncio
from pathlib import Path
from typing import Final

from tests.browser.conftest import chromium, playwright
from tests.dashboardhouse import open_house

FOLDER: Final = Path("docs/how-to/dashboard")


async def take() -> None:
    """Take both pictures."""
    async with open_house() as house, playwright.async_playwright() as driver:
        await house.put_set("decode", replicas=24, size=4)
        await house.put_set("prefill", replicas=12, size=8)
        await house.put_set("train", replicas=4, size=8, ready=3)
        await house.crash("decode-7-2", 137, "CUDA error: out of memory")
        await house.crash("train-3", 3, "NCCL: rank 5 does not answer")
        await house.shows(prefill_11_7="Running", train_3="CrashLoopBackOff", decode_7_2="CrashLoopBackOff")
        await house.model.diagnose()
        browser = await driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = await browser.new_page(viewport={"width": 1200, "height": 300})
        await page.goto(house.dashboard.link)
        await page.locator("#sets .set").first.wait_for()
        await page.screenshot(path=FOLDER / "now.png")
        await page.set_viewport_size({"width": 1200, "height": 520})
        await page.emulate_media(color_scheme="dark")
        await page.goto(house.base + "sets/default/train")
        await page.locator("[id='c/3/0']").click()
        await page.locator("#pane h2").first.wait_for()
        clip = {"x": 0, "y": 0, "width": 1200, "height": 430}
        await page.screenshot(path=FOLDER / "set.png", clip=clip)
        await browser.close()


if __name__ == "__main__":
    asyncio.run(take())
