"""The files of the pages: scripts, the style and the icon, at a path that changes with their content."""

import hashlib
from functools import cache
from importlib import resources
from typing import Final

TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@cache
def files() -> dict[str, str]:
    """Return the text of each file by its name."""
    place = resources.files("lwsctl.dashboard") / "static"
    return {file.name: file.read_text(encoding="utf-8") for file in place.iterdir() if kind_of(file.name)}


@cache
def folder() -> str:
    """Return the path of the files, which has another name for other content, so that browsers may keep them."""
    digest = hashlib.sha256("".join(f"{name}\n{text}\n" for name, text in sorted(files().items())).encode())
    return f"static/{digest.hexdigest()[:12]}"


def kind_of(name: str) -> str:
    """Return the media type of a file; empty for a file that is not served.

    >>> kind_of("main.js"), kind_of("main.py")
    ('text/javascript', '')
    """
    return TYPES.get(name.rpartition(".")[2], "")
