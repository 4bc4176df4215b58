"""Writes pages from the code or, with `--check`, compares them with it."""
# ruff: noqa: INP001, T201 - part of the scripts beside it, which talk

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]


def sentence(text: str) -> str:
    """Return a text that starts with a capital letter."""
    return text[:1].upper() + text[1:]


def main(path: Path, source: str, text: Callable[[], str]) -> int:
    """Write or check one page. Return the exit code."""
    return write(source, lambda: {path: text()})


def write(source: str, pages: Callable[[], Mapping[Path, str]], folder: Path | None = None) -> int:
    """Write or check pages, and remove other files in the directory. Return the exit code."""
    parser = argparse.ArgumentParser(description=f"Write pages from {source}.")
    parser.add_argument(
        "--check", action="store_true", help="do not write files, and exit with code 1 if a page is out of date"
    )
    check = parser.parse_args().check
    texts = pages()
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    surplus = sorted(set(folder.iterdir()) - texts.keys()) if folder is not None and folder.exists() else []
    for path in (*stale, *surplus):
        change = "removed" if path in surplus else "written"
        print(f"{path.relative_to(ROOT)} {'is out of date. Run make generate' if check else change}")
    if not check:
        for path in stale:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts[path], encoding="utf-8")
        for path in surplus:
            path.unlink()
    return int(check and bool(stale or surplus))
