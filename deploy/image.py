"""Builds an image with deploy/Containerfile and the installed tool, which is podman or buildah.

python deploy/image.py --base REGISTRY/NAME:TAG@sha256:DIGEST [--target local] [--tag NAME:TAG]
"""

import argparse
import datetime as dt
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from leaderworkerset import __version__
from lwsctl.cli.shell.hostplatform import IMAGE

ROOT: Final = Path(__file__).parents[1]
TOOLS: Final = ("podman", "buildah")
TAGS: Final = {"": f"localhost/leaderworkerset:{__version__}", "local": IMAGE}
"""The image names by target: the manager, or `lws` with the embedded cluster."""


def words(base: str, tag: str, commit: str, date: str, target: str = "") -> list[str]:
    """Return the arguments without the name of the tool."""
    arguments = {"BASE_IMAGE": base, "LWS_GIT_COMMIT": commit, "LWS_BUILD_DATE": date}
    build_arguments = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
    selection = ["--target", target] if target else []
    return ["build", "--file", "deploy/Containerfile", "--tag", tag, *selection, *build_arguments]


def commit() -> str:
    """Return the current commit, or `unknown` outside a repository."""
    if shutil.which("git") is None:
        return "unknown"
    process = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return process.stdout.strip() or "unknown"


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the image, and exit with the exit code of the tool."""
    parser = argparse.ArgumentParser(
        description="Build the image of the manager, or of `lws` with the embedded cluster."
    )
    parser.add_argument("--base", required=True, metavar="REGISTRY/NAME:TAG@sha256:DIGEST", help="a Python image")
    parser.add_argument("--target", default="", choices=TAGS, help="build the image of `lws` with the embedded cluster")
    parser.add_argument("--tag", help="the image name. The default depends on the target")
    options = parser.parse_args(arguments)
    tool = next(filter(shutil.which, TOOLS), None)
    if tool is None:
        sys.exit(f"error: {' or '.join(TOOLS)} not found. Install one of them")
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    built = words(options.base, options.tag or TAGS[options.target], commit(), now, options.target)
    sys.exit(subprocess.run([tool, *built, "."], cwd=ROOT, check=False).returncode)


if __name__ == "__main__":
    main()
