"""Tests `lws manager` before it runs: version, configuration and exit codes (R-MGR-3, R-CFG-3)."""

from pathlib import Path

import pytest
import structlog

from kuberuntime.errors import ConfigError, flatten
from leaderworkerset.manager import buildinfo, clusterprocess, managerprogram
from lwsctl.cli import app

HEAD = "apiVersion: config.lws.x-k8s.io/v1\nkind: Configuration\n"


@pytest.fixture(autouse=True)
def _own_logs() -> object:
    """Restore the original logging configuration."""
    yield
    structlog.reset_defaults()


def test_version_has_three_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["manager", "--version"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["Version", "Build Date", "Git Commit"]


def test_user_agent_names_version_system_and_commit() -> None:
    """The user agent contains the version, the system and the commit (R-MGR-7)."""
    named = buildinfo.user_agent({"LWS_GIT_COMMIT": "0123456789abcdef"})
    assert named.startswith("lws/v")
    assert named.endswith(") 0123456")
    assert buildinfo.user_agent({}).endswith(") unknown")


def test_help_lists_the_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["manager", "-h"]) == 0
    assert "--leader-elect-lease-duration (default 15s)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo: 1\n", 'strict decoding error: unknown field \\"foo\\"'),
        ("webhook: {\n", "invalid YAML"),
        ("webhook: {port: 1}\nwebhook: {port: 2}\n", "key 'webhook' is already defined"),
        ("gangSchedulingManagement: {}\n", "must be set when gang scheduling is enabled"),
        ("gangSchedulingManagement: {schedulerProvider: kai}\n", "schedulerProvider: Unsupported value"),
        ("tls: {minVersion: VersionTLS10}\n", "Please use VersionTLS12 or VersionTLS13"),
        ("leaderElection: {renewDeadline: 20s}\n", "must be greater than renewDeadline"),
    ],
)
def test_invalid_configuration_stops_the_manager(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The manager exits if its configuration is invalid (R-CFG-3, R-OP-51)."""
    file = tmp_path / "config.yaml"
    file.write_text(HEAD + text)
    assert app.run(["manager", f"--config={file}"]) == 1
    logged = capsys.readouterr().err
    assert "\tERROR\tsetup\tunable to load the configuration\t" in logged
    assert message in logged


@pytest.mark.parametrize(("version", "warnings"), [("v1", 0), ("v1alpha1", 1)])
def test_deprecated_configuration_version_causes_a_warning(
    version: str, warnings: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The manager continues after the warning, and then fails because the kubeconfig does not exist (N-CFG-3)."""
    file = tmp_path / "config.yaml"
    file.write_text(HEAD.replace("v1\n", f"{version}\n"))
    assert app.run(["manager", f"--config={file}", "--kubeconfig", "/no/such/file"]) == 1
    logged = capsys.readouterr().err
    assert logged.count("\tsetup\tthe version of the configuration is deprecated\t") == warnings
    assert "\tERROR\tsetup\tproblem running manager\t" in logged


def test_missing_configuration_file_stops_the_manager(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["manager", "-config", "/no/such/file", "--zap-encoder=json"]) == 1
    logged = capsys.readouterr().err
    assert '"msg":"unable to load the configuration","error":"/no/such/file: No such file or directory"' in logged


def test_missing_kubeconfig_stops_the_manager(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["manager", "--kubeconfig", "/no/such/file"]) == 1
    assert "\tERROR\tsetup\tproblem running manager\t" in capsys.readouterr().err


def test_unknown_flag_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["manager", "--no-such-flag"]) == 2
    assert "flag provided but not defined: -no-such-flag" in capsys.readouterr().err


def test_namespace_is_read_from_the_service_account(tmp_path: Path) -> None:
    """The namespace is read from the service account (R-MGR-3)."""
    file = tmp_path / "namespace"
    assert clusterprocess.namespace(file, managerprogram.NAMESPACE) == "lws-system"
    file.write_text("elsewhere\n")
    assert clusterprocess.namespace(file, managerprogram.NAMESPACE) == "elsewhere"


def test_errors_of_a_group_are_reported_separately() -> None:
    group = ExceptionGroup("a", [ExceptionGroup("b", [ConfigError("x")]), OSError("y")])
    assert [str(error) for error in flatten(group)] == ["x", "y"]
