"""Tests the manager image without a container engine: its base, its files, and its user."""

import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from deploy import image
from testkit.repository import ROOT

from lwsctl.cli.shell.hostplatform import IMAGE

TEXT = (ROOT / "deploy/Containerfile").read_text()


def instructions() -> list[tuple[str, str]]:
    """Return the instructions with joined lines and without comments."""
    lines = [line for line in TEXT.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


STEPS = instructions()


def stages() -> list[list[tuple[str, str]]]:
    """Return the instructions by build stage."""
    starts = [index for index, (word, _) in enumerate(STEPS) if word == "FROM"]
    return [STEPS[start:end] for start, end in pairwise([*starts, len(STEPS)])]


def of(word: str) -> list[str]:
    return [rest for name, rest in STEPS if name == word]


def test_all_instructions_are_known() -> None:
    assert {word for word, _ in STEPS} <= {
        "FROM",
        "ARG",
        "ENV",
        "LABEL",
        "COPY",
        "RUN",
        "USER",
        "ENTRYPOINT",
        "WORKDIR",
    }


def test_base_image_has_no_default() -> None:
    """The build selects the registry, the source and the content of the base image."""
    assert "BASE_IMAGE" in of("ARG")
    assert {base.split(" AS ")[0] for base in of("FROM")} == {"${BASE_IMAGE}", "build"}


@pytest.mark.parametrize(
    ("base", "accepted"),
    [
        (f"registry.example.com/library/python:3.13-slim@sha256:{'0a' * 32}", True),
        (f"localhost/python@sha256:{'0a' * 32}", True),
        (f"registry:5000/python@sha256:{'0a' * 32}", True),
        ("", False),
        ("python:3.13-slim", False),
        ("library/python:3.13-slim", False),
        (f"python:3.13-slim@sha256:{'0a' * 32}", False),
        (f"library/python:3.13-slim@sha256:{'0a' * 32}", False),
        ("registry.example.com/library/python:3.13-slim", False),
        ("registry.example.com/library/python@sha256:0a", False),
    ],
)
def test_base_without_registry_or_digest_is_rejected(base: str, accepted: bool) -> None:
    """The base image must be pinned (R-OP-78)."""
    (check,) = [run for run in of("RUN") if "BASE_IMAGE" in run]
    result = subprocess.run(
        ["sh", "-c", check], env={"PATH": os.defpath, "BASE_IMAGE": base}, capture_output=True, text=True, check=False
    )
    assert (result.returncode == 0) is accepted
    assert accepted or f'BASE_IMAGE: Invalid value: "{base}"' in result.stderr


def test_base_is_checked_before_the_build() -> None:
    words = [word for word, _ in STEPS]
    assert words[:4] == ["ARG", "FROM", "ARG", "RUN"]
    assert "BASE_IMAGE" in STEPS[3][1]


def test_stages_have_the_same_base() -> None:
    """Images run the virtual environment that was built in a stage with the same base image.

    The manager's image is the default.
    """
    assert of("FROM") == ["${BASE_IMAGE} AS build", "build AS local-build", "${BASE_IMAGE} AS local", "${BASE_IMAGE}"]
    assert image.TAGS["local"] == IMAGE


def test_no_package_index_or_other_host_is_named() -> None:
    assert not re.search(r"https?://|index-url|trusted-host|find-links", TEXT)


def test_dependencies_are_installed_from_the_lock_with_hashes() -> None:
    """Builds are reproducible from the lock (R-OP-78)."""
    installs = [run for run in of("RUN") if "pip" in run and "install" in run]
    for install, name in zip(installs, ("runtime.lock", "local.lock"), strict=True):
        assert "--require-hashes" in install
        assert f"-r /build/{name}" in install
        lock = (ROOT / "requirements" / name).read_text()
        pins = re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE)
        assert pins
        assert lock.count("--hash=sha256:") >= len(pins)


@pytest.mark.parametrize("copy", of("COPY"))
def test_copied_files_exist_and_are_sent_to_the_build(copy: str) -> None:
    """`.containerignore` excludes all other files in the repository."""
    words = [word for word in shlex.split(copy) if not word.startswith("--chmod")]
    if words[0].startswith("--from="):
        assert words[0] in {"--from=build", "--from=local-build"}
        return
    sent = {line[1:] for line in (ROOT / ".containerignore").read_text().splitlines() if line.startswith("!")}
    for source in words[:-1]:
        assert (ROOT / source).exists()
        assert source in sent


def test_exactly_the_manager_packages_are_copied() -> None:
    """The command and the embedded cluster are only in the image of `--target local`."""
    build, local_build, _, manager = stages()
    copied = {stage: packages_of(steps) for stage, steps in (("build", build), ("local", local_build))}
    assert copied["build"] == {"packages/kuberuntime/src/kuberuntime", "packages/leaderworkerset/src/leaderworkerset"}
    assert copied["local"] == {"packages/localkube/src/localkube", "packages/lwsctl/src/lwsctl"}
    for steps in (build, local_build):
        (install,) = [run for name, run in steps if name == "RUN" and run.startswith("cp -R")]
        assert {f"/build/{Path(path).name}" for path in packages_of(steps)} <= set(shlex.split(install))
    assert "local" not in " ".join(rest for _, rest in manager)


def packages_of(steps: Sequence[tuple[str, str]]) -> set[str]:
    """Return the package directories that a build stage copies."""
    return {
        word for name, rest in steps if name == "COPY" for word in shlex.split(rest) if word.startswith("packages/")
    }


def test_image_runs_as_an_unprivileged_user() -> None:
    """The Deployment sets `runAsNonRoot`, which requires a numeric user (R-MGR-8, R-OP-78)."""
    for stage in stages()[2:]:
        words = [word for word, _ in stage]
        assert ("USER", "65532:65532") in stage
        assert words.index("USER") > words.index("RUN")


def test_entrypoint_is_the_manager() -> None:
    """The image starts `/manager` (R-MGR-8)."""
    assert of("ENTRYPOINT") == ['["/usr/bin/lws"]', '["/manager"]']
    assert any(run == "ln -s /opt/lws/bin/manager /manager" for run in of("RUN"))


@pytest.mark.parametrize("place", ["/manager", "/lws-operator", "/usr/bin/gather", "/usr/bin/lws"])
def test_entrypoints_are_programs_of_the_environment(place: str) -> None:
    name = place.rpartition("/")[2]
    assert any(run == f"ln -s /opt/lws/bin/{name} {place}" for run in of("RUN"))
    script = ROOT / "deploy" / name
    text = script.read_text()
    assert text.startswith(("#!/opt/lws/bin/python -IBu\n", "#!/opt/lws/bin/python -IB\n"))
    assert script.stat().st_mode & 0o111
    ast.parse(text)


@pytest.mark.slow
def test_entrypoint_passes_flags_to_the_manager() -> None:
    """The test runs the entry point with its own interpreter (R-MGR-8)."""
    words = [sys.executable, "-IBu", str(ROOT / "deploy/manager"), "-version"]
    result = subprocess.run(words, capture_output=True, text=True, check=True)
    assert [line.split(":")[0] for line in result.stdout.splitlines()] == ["Version", "Build Date", "Git Commit"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "text"),
    [(["operator", "--help"], 0, "--terminate-on-files"), ([], 1, "usage: lws-operator operator")],
)
def test_operator_entrypoint_requires_its_subcommand(words: list[str], code: int, text: str) -> None:
    """The operator starts with a subcommand (R-OP-9)."""
    command = [sys.executable, "-IBu", str(ROOT / "deploy/lws-operator"), *words]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == code
    assert text in result.stdout + result.stderr
