"""The command installs on macOS and Windows: each locked package has a wheel there."""

import json
import re
from typing import Final

import pytest
from packaging.tags import compatible_tags, cpython_tags, mac_platforms
from packaging.utils import parse_wheel_filename
from tests.repository.lockedwheels import LOCK, PLATFORMS, PYTHON, RECORD

VERSION: Final = (3, int(PYTHON.partition(".")[2]))


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_locked_package_has_a_wheel(platform: str) -> None:
    """`make lock` records the names of the wheels; the interpreter here may need one package less."""
    recorded = json.loads(RECORD.read_text())["wheels"][platform]
    wheels = {(str(name), str(version)): tags for name, version, _, tags in map(parse_wheel_filename, recorded)}
    pins = set(re.findall(r"^([a-z0-9-]+)==([\w.]+)", LOCK.read_text(), re.MULTILINE))
    places = [platform] if platform.startswith("win") else list(mac_platforms((11, 0), "arm64"))
    accepted = {*cpython_tags(VERSION, platforms=places), *compatible_tags(VERSION, "cp313", places)}

    assert wheels.keys() == pins
    assert [name for (name, _), tags in wheels.items() if not tags & accepted] == []
