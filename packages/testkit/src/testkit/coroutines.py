"""Supports tests that are coroutines, and fixtures that are async context managers."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import pytest


def run_test(
    pyfuncitem: pytest.Function, run: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run
) -> bool | None:
    """Run a test if it is a coroutine. Its fixtures may be async context managers."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None

    async def entered() -> None:
        async with AsyncExitStack() as stack:
            arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
            for name, value in arguments.items():
                if isinstance(value, AbstractAsyncContextManager):
                    arguments[name] = await stack.enter_async_context(value)
            await pyfuncitem.obj(**arguments)

    run(entered())
    return True
