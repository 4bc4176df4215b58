"""Tests merging, columns, search, and the first error in logs of running containers in a real browser."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from testkit.waiting import until
from tests.browser.conftest import LIMIT, chromium, playwright
from tests.e2e.harness import LocalCluster, clean_up, line_with, lws, make_shell, shell_script

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

SAYS = """echo "rank $LWS_WORKER_INDEX begins"; echo '<img src=x onerror=alert(1)>'
sleep 1; echo "fatal: rank $LWS_WORKER_INDEX lost its peer"; exec sleep 3600"""


def test_lines_of_several_ranks_are_shown_as_text(tmp_path: Path) -> None:
    program = chromium()
    opener = tmp_path / "browser"
    opener.write_text(
        f'#!/bin/sh\nstat -c %a "${{1#file://}}" >{tmp_path}/mode\ncp "${{1#file://}}" {tmp_path}/open.html\n'
    )
    opener.chmod(0o700)
    plain = make_shell(tmp_path)
    shell = replace(plain, environment={**plain.environment, "BROWSER": f"{opener} %s"})
    shell.lws("up", "logs", "--detach")
    cluster = LocalCluster(shell, "logs")

    async def scenario(link: str) -> None:
        """Open the private file that contains the link, in the same way as the user's browser."""
        complaints: list[str] = []
        async with playwright.async_playwright() as driver:
            browser = await driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
            context = await browser.new_context(permissions=["clipboard-read", "clipboard-write"])
            context.set_default_timeout(LIMIT)
            page = await context.new_page()
            page.on("pageerror", lambda error: complaints.append(str(error)))
            await page.goto(f"file://{tmp_path}/open.html")
            await page.wait_for_url("http://127.0.0.1:*/*/")
            assert (await context.request.get(link)).status == 403, "the link opened this browser, once"
            await page.goto(page.url + "sets/default/talks/logs")
            await page.locator("#lines p:has-text('0/0 rank 0 begins')").wait_for()
            assert await page.locator("#lines p:has-text('rank 1')").count() == 0, "at first only leaders"
            await page.fill("#choice", "0/0 0/1")
            await page.press("#choice", "Enter")
            assert page.url.endswith("?rank=0%2F0&rank=0%2F1")
            await page.locator("#lines p.error:has-text('0/1 fatal: rank 1 lost its peer')").wait_for()
            await page.locator("#lines p.error:has-text('0/0 fatal: rank 0 lost its peer')").wait_for()
            assert await page.locator("#lines p:has-text('<img src=x onerror=alert(1)>')").count() == 2
            assert await page.locator("#lines img").count() == 0
            times = [text.split()[0] for text in await page.locator("#lines p").all_inner_texts()]
            assert times == sorted(times)
            await page.click("#first-error")
            await page.locator(
                "#lines p.error:focus:has-text('fatal')"
            ).wait_for()  # the server searches the logs before it responds
            await page.click("#layout")
            assert sorted(await page.locator("#lines section h2").all_inner_texts()) == ["0/0", "0/1"]
            await page.fill("#log-search", "BEGINS")
            assert await page.locator("#lines p").count() == 2
            async with page.expect_download() as saving:
                await page.click("#save")
            await (await saving.value).save_as(tmp_path / "saved.txt")
            await page.click("#menu summary")
            await page.click("#copy")
            await page.locator("#copy:has-text('Copied')").wait_for()
            assert "0/1 talks-0-1: Running" in await page.evaluate("navigator.clipboard.readText()")
            await browser.close()
        assert complaints == []

    try:
        cluster.start(lws("talks", shell_script(SAYS), size=2))
        with shell.running("dashboard", "--local=logs") as dashboard:
            link = line_with(dashboard, "http://127.0.0.1:").rpartition(" ")[2].strip()
            until((tmp_path / "open.html").exists, "the browser", 30)
            asyncio.run(scenario(link))
        assert (tmp_path / "mode").read_text() == "600\n", "nobody else reads the link"
        assert " 0/1 fatal: rank 1 lost its peer\n" in (tmp_path / "saved.txt").read_text()
    finally:
        clean_up(shell)
