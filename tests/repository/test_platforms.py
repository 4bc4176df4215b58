"""Tests that the command can be installed on macOS and Windows, because all packages have wheels for them."""

import json
import re
from typing import Final

import pytest
from packaging.tags import compatible_tags, cpython_tags, mac_platforms
from packaging.utils import parse_wheel_filename
from testkit.repository import ROOT
from tests.repository.lockedwheels import LOCKS, PYTHON, RECORD, accepted
from tests.typed import read

VERSION: Final = (3, int(PYTHON.partition(".")[2]))


@pytest.mark.parametrize(
    ("lock", "platform"), [(lock, platform) for lock, platforms in LOCKS.items() for platform in platforms]
)
def test_every_locked_package_has_a_wheel(lock: str, platform: str) -> None:
    """`make lock` records the wheel names. The interpreter that runs the test may require one package less."""
    recorded = json.loads(RECORD.read_text())["wheels"][lock][platform]
    wheels = {(str(name), str(version)): tags for name, version, _, tags in map(parse_wheel_filename, recorded)}
    text = (ROOT / "requirements" / lock).read_text()
    pins = set(re.findall(r"^([a-z0-9-]+)==([\w.]+)", text, re.MULTILINE))
    macos = re.fullmatch(r"macosx_(\d+)_0_arm64", platform)
    places = [*mac_platforms((int(macos[1]), 0), "arm64")] if macos else accepted(platform)
    tags_here = {*cpython_tags(VERSION, platforms=places), *compatible_tags(VERSION, "cp313", places)}

    assert wheels.keys() == pins
    assert [name for (name, _), tags in wheels.items() if not tags & tags_here] == []


def test_devcontainer_is_the_image_with_the_embedded_cluster() -> None:
    """The file does not contain a registry. Users set BASE_IMAGE, as for the images."""
    settings = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    build = settings["build"]
    file = ROOT / ".devcontainer" / build["dockerfile"]
    assert (file.resolve(), build["target"]) == (ROOT / "deploy/Containerfile", "local")
    assert build["args"] == {"BASE_IMAGE": "${localEnv:BASE_IMAGE}"}
    read(settings["postAttachCommand"])
