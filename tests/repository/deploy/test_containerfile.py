"""The manager's image, read without an engine: its base, its files, and its user."""

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from testkit.repository import ROOT

TEXT = (ROOT / "deploy/Containerfile").read_text()


def instructions() -> list[tuple[str, str]]:
    """Return the instructions with continued lines joined and comments dropped."""
    lines = [line for line in TEXT.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


STEPS = instructions()


def of(word: str) -> list[str]:
    return [rest for name, rest in STEPS if name == word]


def test_all_instructions_are_known() -> None:
    assert {word for word, _ in STEPS} <= {"FROM", "ARG", "ENV", "LABEL", "COPY", "RUN", "USER", "ENTRYPOINT"}


def test_base_image_has_no_default() -> None:
    """The builder selects the registry, the source and the content of the base."""
    assert "BASE_IMAGE" in of("ARG")
    assert {base.split(" AS ")[0] for base in of("FROM")} == {"${BASE_IMAGE}"}


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
def test_base_without_registry_or_digest_is_refused(base: str, accepted: bool) -> None:
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
    """The second stage runs the virtual environment of the first."""
    assert len({base.split(" AS ")[0] for base in of("FROM")}) == 1
    assert len(of("FROM")) == 2


def test_no_package_index_or_other_host_is_named() -> None:
    assert not re.search(r"https?://|index-url|trusted-host|find-links", TEXT)


def test_dependencies_are_installed_from_the_lock_with_hashes() -> None:
    """Builds are reproducible from the lock (R-OP-78)."""
    (install,) = [run for run in of("RUN") if "pip" in run and "install" in run]
    assert "--require-hashes" in install
    assert "-r /build/runtime.lock" in install
    lock = (ROOT / "requirements/runtime.lock").read_text()
    pins = re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE)
    assert pins
    assert lock.count("--hash=sha256:") >= len(pins)


@pytest.mark.parametrize("copy", of("COPY"))
def test_copied_files_exist_and_are_sent_to_the_build(copy: str) -> None:
    """`.containerignore` excludes all other files of the repository."""
    words = [word for word in shlex.split(copy) if not word.startswith("--chmod")]
    if words[0].startswith("--from="):
        assert words[0] == "--from=build"
        return
    sent = {line[1:] for line in (ROOT / ".containerignore").read_text().splitlines() if line.startswith("!")}
    for source in words[:-1]:
        assert (ROOT / source).exists()
        assert source in sent


def test_exactly_the_manager_packages_are_copied() -> None:
    """The embedded cluster, `localkube`, is neither in the image nor sent to its build."""
    copied = {word for copy in of("COPY") for word in shlex.split(copy)[:-1] if word.startswith("packages")}
    assert copied == {"packages/kuberuntime/src/kuberuntime", "packages/leaderworkerset/src/leaderworkerset"}
    (install,) = [run for run in of("RUN") if run.startswith("cp -R")]
    assert {f"/build/{Path(path).name}" for path in copied} <= set(shlex.split(install))
    assert "localkube" not in re.sub(r"(?m)^#.*$", "", TEXT + (ROOT / ".containerignore").read_text())


def test_image_runs_as_an_unprivileged_user() -> None:
    """The Deployment sets `runAsNonRoot`, which requires a numeric user (R-MGR-8, R-OP-78)."""
    assert of("USER") == ["65532:65532"]
    last_stage = [word for word, _ in STEPS[[word for word, _ in STEPS].index("FROM", 1) :]]
    assert last_stage.index("USER") > last_stage.index("RUN")


def test_entrypoint_is_the_manager() -> None:
    """The image starts `/manager` (R-MGR-8)."""
    assert of("ENTRYPOINT") == ['["/manager"]']
    assert any(run == "ln -s /opt/lws/bin/manager /manager" for run in of("RUN"))


@pytest.mark.parametrize("place", ["/manager", "/lws-operator", "/usr/bin/gather"])
def test_entrypoints_are_programs_of_the_environment(place: str) -> None:
    name = place.rpartition("/")[2]
    assert any(run == f"ln -s /opt/lws/bin/{name} {place}" for run in of("RUN"))
    script = ROOT / "deploy" / name
    text = script.read_text()
    assert text.startswith("#!/opt/lws/bin/python -IBu\n")
    assert script.stat().st_mode & 0o111
    ast.parse(text)


@pytest.mark.slow
def test_entrypoint_passes_flags_to_the_manager() -> None:
    """The test runs the entrypoint with its own interpreter (R-MGR-8)."""
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
