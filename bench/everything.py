"""Runs all benchmarks, prints and stores raw data and medians, and generates the page of all runs.

    python -m bench.everything [--record FILE] [--patience SECONDS]
    python -m bench.everything --draw [FILE.jsonl ...] [--write build/benchmarks.html]

It takes about seven minutes: five rounds of all benchmarks, so that other work of the machine affects all equally. The
writes of the manager, and 500 and 2,000 pods, are measured once. With LWS_CONTROLPLANE_ASSETS set, the embedded API
server is also measured side by side with a real kube-apiserver. FILE (build/benchmarks/DAY-TIME.jsonl) gets the facts
of the machine, every raw line and the medians, as JSON lines; `bench.everything --draw` draws build/benchmarks.html
from it and from earlier records.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench import page
from bench.page import RECORDED
from bench.record import Line, machine, medians

ROUNDS = 5
ALL: tuple[tuple[str, ...], ...] = (
    ("bench.command", "start", "--runs", "1"),
    ("bench.cluster", "groups", "--runs", "1"),
    ("bench.apiserver", "--runs", "1", "--seconds", "3"),
)
ONCE: tuple[tuple[str, ...], ...] = (
    ("bench.cluster", "idle", "--runs", "1"),
    ("bench.cluster", "many"),
    ("bench.writes",),
)
SIDE_BY_SIDE: tuple[tuple[str, ...], ...] = (("bench.apiserver", "--side-by-side", "--runs", "5", "--seconds", "3"),)
QUIET = 10.0
"""The maximum percentage of ten seconds in which processes may wait for a CPU."""


def pressure() -> float:
    """Return the CPU pressure in the last ten seconds in percent, or 0 if it is unknown."""
    path = Path("/proc/pressure/cpu")
    return float(path.read_text().split("avg10=")[1].split()[0]) if path.exists() else 0.0


def wait_until_quiet(patience: float) -> None:
    """Wait until the CPU pressure is low, for at most this number of seconds."""
    deadline = time.monotonic() + patience
    while pressure() > QUIET and time.monotonic() < deadline:
        time.sleep(1)


def run(words: tuple[str, ...], number: int) -> Iterator[Line]:
    """Run one benchmark, and yield its lines."""
    before = pressure()
    with subprocess.Popen([sys.executable, "-m", *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for text in process.stdout:
            line: Line = json.loads(text)
            yield line | {"run": line.get("run") or number, "cpu_pressure_before_percent": before}
    if process.returncode:
        raise SystemExit(f"{words[0]} exited with code {process.returncode}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    file = RECORDED[-1] / f"{time.strftime('%Y-%m-%d-%H%M')}.jsonl"
    parser.add_argument("--record", type=Path, default=file, help="the file for all result lines")
    parser.add_argument(
        "--patience", type=float, default=0, help="seconds to wait before each benchmark until the machine is idle"
    )
    parser.add_argument(
        "--draw", nargs="*", type=Path, metavar="FILE", help="do not run benchmarks, but draw these runs, or all runs"
    )
    parser.add_argument("--write", type=Path, default=page.PAGE, help="the output page")
    options = parser.parse_args()
    if options.draw is not None:
        page.write(options.draw, options.write)
        print(options.write)
        return
    lines = [machine()]
    print(json.dumps(lines[0]), flush=True)
    plan = [(number, words) for number in range(ROUNDS) for words in ALL] + [(0, words) for words in ONCE]
    plan += [(0, words) for words in SIDE_BY_SIDE if "LWS_CONTROLPLANE_ASSETS" in os.environ]
    for number, words in plan:
        wait_until_quiet(options.patience)
        for line in run(words, number):
            lines.append(line)
            print(json.dumps(line), flush=True)
    median_lines = [{"median": line} for line in medians(line for line in lines if "measurement" in line)]
    print("\n".join(map(json.dumps, median_lines)))
    options.record.parent.mkdir(parents=True, exist_ok=True)
    options.record.write_text("".join(f"{json.dumps(line)}\n" for line in [*lines, *median_lines]))
    page.write(page=options.write)


if __name__ == "__main__":
    main()
