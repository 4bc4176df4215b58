"""The scripts, styles and images that ship with the package."""

from functools import cache
from importlib import resources
from typing import Final

TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@cache
def files() -> dict[str, str]:
    """Return the text of each file by its name."""
    folder = resources.files("leaderworkerset.dashboard") / "static"
    return {one.name: one.read_text(encoding="utf-8") for one in folder.iterdir() if kind_of(one.name)}


def kind_of(name: str) -> str:
    """Return the media type of a file, empty for one that is not served.

    >>> kind_of("main.js"), kind_of("main.py")
    ('text/javascript', '')
    """
    return TYPES.get(name.rpartition(".")[2], "")
