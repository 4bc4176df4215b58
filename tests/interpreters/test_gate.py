"""Tests the output and records of `make unit-all`, and the list of unstable tests of `make test`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from testkit import suite
from tests.interpreters import __main__ as gate
from tests.interpreters import environments
from tests.interpreters.discovery import Interpreter
from tests.interpreters.environments import ROOT

MISSING = Interpreter((3, 12, 99), Path("/missing/python3.12"))


def test_single_python_is_announced_prominently(capsys: pytest.CaptureFixture[str]) -> None:
    gate.announce([Interpreter(gate.OWN, Path(sys.executable))], [])
    assert f"ONLY ONE PYTHON IS ON THIS MACHINE: {gate.dotted(gate.OWN)}." in capsys.readouterr().out


def test_every_found_python_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    unfit = Interpreter((3, 15, 0), Path("/opt/python3.15"), "it is a pre-release (alpha)")
    gate.announce([MISSING, unfit], [MISSING])
    assert capsys.readouterr().out.splitlines()[1:] == [
        "Python 3.12.99 is tried: /missing/python3.12",
        "Python 3.15.0 is not tried, it is a pre-release (alpha): /opt/python3.15",
    ]


def test_failing_python_is_named_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = gate.attempt(MISSING)
    gate.report([MISSING], {MISSING: outcome})
    assert outcome.startswith("FAILED: [Errno 2] No such file or directory: ")
    assert f"Python 3.12.99: unit tests, a simulated life, one `lws run`: {outcome}" in capsys.readouterr().out


def test_succeeding_program_prints_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    gate.demonstrate([sys.executable, "-c", "print('a'); print('done')"])
    assert capsys.readouterr().out.splitlines()[1:] == ["done"]


def test_failing_program_is_retried_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    marker = tmp_path / "marker"
    script = f"import os, sys; m = {str(marker)!r}; e = os.path.exists(m); open(m, 'w'); print('why'); sys.exit(0 if e else 3)"
    gate.demonstrate([sys.executable, "-c", script])
    told = capsys.readouterr().out
    assert told.splitlines().count("why") == 2
    assert "unstable: exit code 3: " in told


def test_program_that_fails_twice_fails() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        gate.demonstrate([sys.executable, "-c", "raise SystemExit(3)"])


def repository(place: Path, lock: str = "a==1") -> Path:
    """Return a small repository with a lock file."""
    (place / "requirements").mkdir(parents=True)
    for name in ("test.lock", "local.lock"):
        (place / "requirements" / name).write_text(lock)
    for name in environments.PACKAGES:
        (place / "packages" / name).mkdir(parents=True)
        (place / "packages" / name / "pyproject.toml").write_text(f'[project]\nname = "{name}"\n')
    (place / "pyproject.toml").write_text("[tool.ruff]\nline-length = 1\n")
    return place


def test_current_environment_is_reused(tmp_path: Path) -> None:
    root, kept = repository(tmp_path / "root"), tmp_path / "3.12.99"
    kept.mkdir()
    (kept / environments.STAMP).write_text(environments.digest(MISSING, root))
    assert environments.prepare(MISSING, root=root, parent=tmp_path) == kept / "bin" / "python"


def test_outdated_environment_is_created_again(tmp_path: Path) -> None:
    root, kept = repository(tmp_path / "root"), tmp_path / "3.12.99"
    kept.mkdir()
    (kept / environments.STAMP).write_text(environments.digest(MISSING, repository(tmp_path / "old", "a==0")))
    with pytest.raises(FileNotFoundError, match=r"/missing/python3\.12"):
        environments.prepare(MISSING, root=root, parent=tmp_path)
    assert not kept.exists()


def test_unit_environment_omits_packages_of_other_tests() -> None:
    kept, left_out = (
        "a==1 \\\n    --hash=sha256:0\n",
        "numpy==2 ; python_full_version < '3.12' \\\n    --hash=sha256:1\n",
    )
    assert environments.needed(left_out + kept + left_out) == kept
    names = {line.partition("==")[0] for line in (ROOT / "requirements/test.lock").read_text().splitlines()}
    assert names >= environments.ELSEWHERE


def test_tool_settings_do_not_change_the_environment_digest(tmp_path: Path) -> None:
    root = repository(tmp_path)
    before = environments.digest(MISSING, root)
    (root / "pyproject.toml").write_text("[tool.ruff]\nline-length = 2\n")
    assert environments.digest(MISSING, root) == before
    (root / "packages/localkube/pyproject.toml").write_text('[project]\nname = "y"\n')
    assert environments.digest(MISSING, root) != before


def test_pass_at_the_second_try_is_listed_by_name(tmp_path: Path) -> None:
    """The test runs both commands of `make test`."""
    (tmp_path / "test_it.py").write_text(
        "from pathlib import Path\n"
        "def test_steady(): pass\n"
        "def test_shaky():\n"
        f"    marker = Path({str(tmp_path / 'marker')!r})\n"
        "    tried, _ = marker.exists(), marker.touch()\n"
        "    assert tried\n"
        "def test_broken(): assert False\n"
    )
    assert "unstable" not in tried(tmp_path)
    lines = tried(tmp_path, "--second-try", "--last-failed", "--last-failed-no-failures=none").splitlines()
    assert [line for line in lines if line.startswith("unstable: ")] == ["unstable: test_it.py::test_shaky"]
    assert "1 failed, 1 passed" in lines[-1]


def test_run_with_too_many_unstable_tests_fails(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\nfrom pathlib import Path\n"
        f"@pytest.mark.parametrize('number', range({suite.MOST_UNSTABLE + 1}))\n"
        "def test_shaky(number):\n"
        f"    marker = Path({str(tmp_path)!r}, f'marker-{{number}}')\n"
        "    tried, _ = marker.exists(), marker.touch()\n"
        "    assert tried\n"
    )
    tried(tmp_path)
    again = tried(tmp_path, "--second-try", "--last-failed", "--last-failed-no-failures=none")
    assert f"{suite.MOST_UNSTABLE + 1} tests are unstable, but at most {suite.MOST_UNSTABLE} are permitted" in again


def test_file_that_a_failed_test_leaves_open_fails_no_later_test(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import gc, pytest\npytestmark = pytest.mark.filterwarnings('error')\n"
        "def test_leaky():\n"
        "    cycle = [open('/dev/null')]\n"
        "    cycle.append(cycle)\n"
        "    assert False\n"
        "def test_later(): gc.collect()\n"
    )
    assert "1 failed, 1 passed" in tried(tmp_path)


def test_hanging_test_fails_by_name_and_is_retried(tmp_path: Path) -> None:
    """In a parallel run, the worker process exits with the test, and pytest exits with the remaining tests."""
    (tmp_path / "test_it.py").write_text(
        "import time\nfrom pathlib import Path\n"
        "def test_hanging():\n"
        f"    marker = Path({str(tmp_path / 'marker')!r})\n"
        "    if not marker.exists():\n"
        "        marker.touch(), time.sleep(1000)\n"
        "def test_broken(): assert False\n"
    )
    side_by_side = (*gate.OPTIONS, "-o", "faulthandler_timeout=2")
    assert "crashed while running 'test_it.py::test_hanging'" in tried(tmp_path, *side_by_side)
    again = tried(tmp_path, "--second-try", "--last-failed", "--last-failed-no-failures=none")
    assert "unstable: test_it.py::test_hanging" in again


def tried(folder: Path, *options: str) -> str:
    """Return the pytest output for the tests in a directory, with this repository's plugin."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-p", "testkit.suite", "-c", "/dev/null", f"--rootdir={folder}"]
    result = subprocess.run(
        [*command, "-o", f"cache_dir={folder}/cache", *options, str(folder)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1, result.stdout + result.stderr
    return result.stdout


def test_make_retries_failed_tests_and_lists_unstable_ones() -> None:
    recipe = next(line for line in (ROOT / "Makefile").read_text().splitlines() if "--last-failed " in line)
    assert "$(BIN)/pytest $(NO_HANGING) --second-try --last-failed --last-failed-no-failures=none" in recipe


def test_continuous_integration_runs_the_readme_command_first() -> None:
    commands = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line.startswith("make")]
    tiers = ["make test", "make check", "make test-kubernetes"]
    assert commands == [*tiers, "make unit-all ARGS=--ends", """make test-node ARGS="-m 'not long'\""""]
    assert "\nmake test " in (ROOT / "README.md").read_text()
