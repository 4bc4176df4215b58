"""A page of the reference that a script writes from the code, or with `--check` compares with it."""
# ruff: noqa: INP001, T201 - part of the scripts beside it, which talk

import argparse
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main(path: Path, source: str, text: Callable[[], str]) -> int:
    """Write or check the page; return the exit code."""
    name = path.relative_to(ROOT)
    parser = argparse.ArgumentParser(description=f"Write {name} from {source}.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page is out of date")
    check = parser.parse_args().check
    wanted = text()
    if path.exists() and path.read_text(encoding="utf-8") == wanted:
        return 0
    print(f"{name} {'is out of date: run make generate' if check else 'written'}")
    if not check:
        path.write_text(wanted, encoding="utf-8")
    return int(check)
