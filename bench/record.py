"""Runs the benchmarks of a subject by name, and prints one JSON line per run, medians, and the machine."""

import json
import os
import platform
import sqlite3
import ssl
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

Line = dict[str, Any]

LABELS = ("measurement", "phase", "server", "code")
"""The fields that distinguish lines whose numbers are not summarized together."""


def run(subject: str, benchmarks: Mapping[str, Callable[[], None]]) -> None:
    """Run the benchmark that the first argument names, with the other arguments."""
    name, *rest = sys.argv[1:] or [""]
    if name not in benchmarks:
        lines = [f"  {each:<10} {(work.__doc__ or '').splitlines()[0]}" for each, work in benchmarks.items()]
        raise SystemExit("\n".join([f"usage: python -m bench.{subject} NAME [--help]", "", *lines]))
    sys.argv = [f"bench.{subject} {name}", *rest]
    benchmarks[name]()


def report(measurement: str, **numbers: object) -> None:
    """Print the raw data of one run."""
    print(json.dumps({"measurement": measurement, **numbers}), flush=True)


def medians(lines: Iterable[Line]) -> list[Line]:
    """Return one line per measurement, with the number of its runs and the median of each number."""
    groups: dict[tuple[Any, ...], list[Line]] = {}
    for line in lines:
        groups.setdefault(tuple(line.get(label) for label in LABELS), []).append(line)
    return [_median(group) for group in groups.values()]


def _median(group: list[Line]) -> Line:
    labels = {label: group[0][label] for label in LABELS if label in group[0]}
    names = [name for name, value in group[0].items() if is_number(value) and name != "run"]
    names = [name for name in names if all(is_number(line.get(name)) for line in group)]
    return labels | {"runs": len(group)} | {name: statistics.median(line[name] for line in group) for name in names}


def is_number(value: object) -> bool:
    """Return whether a value is a number that can be summarized."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def machine() -> Line:
    """Return the properties of the machine that affect numbers."""
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), "")
    memory = next(line for line in Path("/proc/meminfo").read_text().splitlines() if "MemTotal" in line)
    revision = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "machine": {
            "cpu": cpu.partition(":")[2].strip(),
            "cores": os.cpu_count(),
            "memory_gib": round(int(memory.split()[1]) / 2**20),
            "kernel": platform.release(),
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "openssl": ssl.OPENSSL_VERSION,
            "revision": revision.stdout.strip(),
            "load": [round(load, 1) for load in os.getloadavg()],
        }
    }
