"""Defines the addresses of a published release and their options, and writes the generated files."""

import argparse
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from deploy.packages import alerts, changelog
from deploy.packages.bundle import Publication

import leaderworkerset

CHANGELOG: Final = Path(__file__).parents[2] / "CHANGELOG.md"


def published(repository: str = "", runbooks: str = "") -> Publication:
    """Return the publication of the current version. By default, the alerts page is in its repository."""
    version = leaderworkerset.__version__
    _, moment = changelog.released(CHANGELOG.read_text("utf-8"), version)
    page = f"{repository}/blob/v{version}/{alerts.RUNBOOKS}" if repository else ""
    created = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Publication(version, created, repository, runbooks or page)


def add_addresses(parser: argparse.ArgumentParser) -> None:
    """Add the options for the addresses of a published release."""
    sources = "the URL of the release repository"
    page = (
        "the URL of docs/how-to/alerts.md, for runbook_url. Defaults to REPOSITORY/blob/vVERSION/docs/how-to/alerts.md"
    )
    parser.add_argument("--repository", metavar="URL", type=url, default="", help=sources)
    parser.add_argument("--runbooks", metavar="URL", type=url, default="", help=page)


def url(text: str) -> str:
    """Return an address without a trailing slash. Raise an error if it is empty or not a URL."""
    if text and not text.startswith(("https://", "http://")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a URL. Use https://")
    return text.rstrip("/")


def write(directory: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write files by their path in a directory, and return them."""
    for name, text in texts.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [directory / name for name in texts]
