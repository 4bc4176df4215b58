"""Tests that free memory is returned to the operating system if the C library supports it."""

import ctypes
import platform
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from localkube.apiserver.storage import allocator
from localkube.apiserver.storage.store import COMPACT_EVERY, Store, StoreKey

HOLES = """
import resource
from pathlib import Path
from localkube.apiserver.storage import allocator

def used():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

blocks = [bytearray(4000) for _ in range(16000)]
last = blocks[-1]  # what is before it cannot be given back by moving the end of the heap
full = used()
del blocks
assert allocator.trim_memory()
print(full - used(), len(last))
"""
"""A script that frees 64 MB below a live object, and prints the amount of memory that was returned."""


@pytest.fixture(autouse=True)
def _found_anew() -> Iterator[None]:
    allocator._malloc_trim.cache_clear()
    yield
    allocator._malloc_trim.cache_clear()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives free memory back when asked")
def test_free_heap_memory_is_returned_to_the_system() -> None:
    printed = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=True).stdout
    assert int(printed.split()[0]) > 32 * 2**20


@pytest.mark.parametrize("error", [AttributeError, OSError, ImportError])
def test_c_library_without_malloc_trim_is_ignored(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def refuse(*_: Any) -> None:
        raise error

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert not allocator.trim_memory()


async def test_store_returns_memory_when_it_compacts(monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed: list[int] = []

    objects = Store(remembered=10)
    monkeypatch.setattr(allocator, "trim_memory", lambda: trimmed.append(objects.revision))
    key = StoreKey("configmaps", "default", "a")
    obj = objects.create(key, {"metadata": {}})
    for _ in range(2 * COMPACT_EVERY + 100):
        obj = objects.update(key, obj, obj)
        await objects.wait_committed()
    objects.close()
    assert len(trimmed) == 2
