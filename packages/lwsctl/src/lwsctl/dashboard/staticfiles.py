"""Serves the static files of the pages: scripts, the style and the icon. Their path depends on their content."""

import hashlib
from functools import cache
from importlib import resources
from typing import Final

TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@cache
def files() -> dict[str, str]:
    """Return the content of each file by name."""
    place = resources.files("lwsctl.dashboard") / "static"
    return {file.name: file.read_text(encoding="utf-8") for file in place.iterdir() if media_type(file.name)}


@cache
def directory() -> str:
    """Return the path of the files. It depends on the content of the files, so that browsers may cache them."""
    digest = hashlib.sha256("".join(f"{name}\n{text}\n" for name, text in sorted(files().items())).encode())
    return f"static/{digest.hexdigest()[:12]}"


def media_type(name: str) -> str:
    """Return the media type of a file, or an empty string if it is not served.

    >>> media_type("main.js"), media_type("main.py")
    ('text/javascript', '')
    """
    return TYPES.get(name.rpartition(".")[2], "")
