"""Run all benchmarks, print their raw numbers and medians, and keep them.

    python -m bench.everything [--record FILE]

Takes about three minutes. With LWS_CONTROLPLANE_ASSETS set, the embedded API server is also measured side by side with
a real kube-apiserver. FILE gets the facts of the machine, every raw line and the medians, as JSON lines.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.record import Line, machine, medians

ALL = (
    ("bench.startup", "--runs", "7"),
    ("bench.groups", "--runs", "5"),
    ("bench.idle", "--runs", "1"),
    ("bench.apiserver", "--runs", "5", "--seconds", "3"),
)
SIDE_BY_SIDE = ("bench.apiserver", "--side-by-side", "--runs", "5", "--seconds", "3")


def run(words: tuple[str, ...]) -> Iterator[Line]:
    """Run one benchmark; yield its lines."""
    with subprocess.Popen([sys.executable, "-m", *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for text in process.stdout:
            line: Line = json.loads(text)
            yield line
    if process.returncode:
        raise SystemExit(f"{words[0]} ended with {process.returncode}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="the file to write all lines to")
    options = parser.parse_args()
    lines = [machine()]
    print(json.dumps(lines[0]), flush=True)
    for words in [*ALL, *([SIDE_BY_SIDE] if "LWS_CONTROLPLANE_ASSETS" in os.environ else [])]:
        for line in run(words):
            lines.append(line)
            print(json.dumps(line), flush=True)
    found = [{"median": line} for line in medians(line for line in lines if "measurement" in line)]
    print("\n".join(map(json.dumps, found)))
    if options.record:
        options.record.write_text("".join(f"{json.dumps(line)}\n" for line in [*lines, *found]))


if __name__ == "__main__":
    main()
