"""Runs `lws` in a separate process to execute dashboard actions."""

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct


class CommandRunner(Struct, frozen=True):
    """Runs `lws` with options that select the cluster."""

    options: Sequence[str]

    async def run(self, arguments: Sequence[str]) -> tuple[bool, str]:
        """Run a command. Return whether its exit code is 0, and its output."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # do not import modules from the working directory
            "-m",
            "lwsctl.cli",
            *self.options,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "NO_COLOR": "1"},
        )
        try:
            output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.terminate()
                await process.communicate()  # wait() does not return while there is unread output
        return process.returncode == 0, output.decode(errors="replace")
