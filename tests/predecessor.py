"""Runs version 0.1.0, which was never published, from the history of this clone."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from testkit.repository import ROOT

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource

COMMIT: Final = "ca3d4f618f456b5b8d08eaa716141d3d95867470"

OBJECTS: Final = """
import json
from dataclasses import astuple
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.install.objects import build_all
from leaderworkerset.kinds.managed import MANAGED
print(json.dumps([(astuple(resource), obj) for resource, obj in build_all(MANAGED, InstallSettings())]))
"""
"""A script that prints the objects of `lws install` of that version."""


def sources(directory: Path) -> Path:
    """Unpack the sources into a directory. Skip the test if this clone does not contain them."""
    unpack(COMMIT, directory, "src")
    return directory / "src"


def unpack(commit: str, directory: Path, *paths: str) -> None:
    """Unpack files of a commit below these paths. Skip the test if this clone does not contain the commit."""
    known = subprocess.run(
        ["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT, check=False, capture_output=True
    )
    if known.returncode:
        pytest.skip(f"this clone does not have commit {commit[:8]}, which is an earlier version")
    packed = subprocess.run(["git", "archive", commit, *paths], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(directory)], input=packed, check=True)


def environment(src: Path) -> dict[str, str]:
    """Return the environment in which Python runs these sources instead of the installed packages."""
    return {"PYTHONPATH": str(src), "PYTHONSAFEPATH": "1"}


def objects(src: Path) -> list[tuple[Resource, JSONObject]]:
    """Return all objects of the installation of that version."""
    printed = subprocess.run(
        [sys.executable, "-c", OBJECTS], env=os.environ | environment(src), check=True, capture_output=True
    ).stdout
    return [(Resource(*resource), obj) for resource, obj in json.loads(printed)]
