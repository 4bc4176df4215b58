"""Tests the manager's flags, and the settings that they override (contract 12.1, R-MGR-1)."""

import pytest
import yaml
from msgspec import structs
from testkit.repository import ROOT

from kuberuntime.objects.duration import Duration
from leaderworkerset.manager import goflags, managerflags
from leaderworkerset.manager.config import configuration
from leaderworkerset.manager.config.configuration import TLS, ClientConnection, Configuration, LeaderElection
from leaderworkerset.manager.goflags import FlagError
from leaderworkerset.manager.managerlog import LogSettings

REFERENCE = ROOT / "docs" / "reference" / "manager.md"

FILE = Configuration(
    leader_election=LeaderElection(lease_duration=Duration(30), resource_name="mine"),
    client_connection=ClientConnection(qps=7, burst=9),
)


def parse(*words: str) -> Configuration:
    return managerflags.override(FILE, goflags.parse(words, managerflags.FLAGS))


def test_file_applies_without_flags() -> None:
    assert parse() == FILE


def test_flag_with_its_default_value_overrides_the_file() -> None:
    """A flag overrides the file even with its default value (R-MGR-1, R-OP-51)."""
    chosen = parse("--kube-api-qps=500", "-leader-elect-lease-duration", "15s", "--leader-elect=false")
    assert chosen.client_connection == ClientConnection(qps=500, burst=9)
    assert chosen.leader_election == LeaderElection(leader_elect=False, resource_name="mine")


def test_every_flag_sets_its_field() -> None:
    words = {
        "--metrics-bind-address=:1": ("metrics", "bind_address", ":1"),
        "--health-probe-bind-address=:2": ("health", "health_probe_bind_address", ":2"),
        "--kube-api-burst=3": ("client_connection", "burst", 3),
        "--leader-elect-renew-deadline=4s": ("leader_election", "renew_deadline", 4),
        "--leader-elect-retry-period=5s": ("leader_election", "retry_period", 5),
        "--leader-elect-resource-lock=leases": ("leader_election", "resource_lock", "leases"),
        "--leader-elect-resource-name=n": ("leader_election", "resource_name", "n"),
    }
    for word, (section, field, value) in words.items():
        assert getattr(getattr(parse(word), section), field) == value, word


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ([], LogSettings("console", "debug", "warning", "rfc3339")),
        (["--zap-devel=false"], LogSettings("json", "info", "error", "rfc3339")),
        (["--zap-log-level=3"], LogSettings("console", "info", "warning", "rfc3339")),
        (["--zap-log-level=4"], LogSettings("console", "debug", "warning", "rfc3339")),
        (
            [
                "--zap-log-level=error",
                "--zap-encoder=json",
                "--zap-time-encoding=epoch",
                "--zap-stacktrace-level=panic",
            ],
            LogSettings("json", "error", "panic", "epoch"),
        ),
    ],
)
def test_zap_flags_become_log_settings(words: list[str], settings: LogSettings) -> None:
    assert managerflags.log_settings(goflags.parse(words, managerflags.FLAGS)) == settings


@pytest.mark.parametrize("word", ["--zap-log-level=loud", "--zap-log-level=0", "--zap-encoder=xml", "--kube-api-qps=x"])
def test_meaningless_values_are_rejected(word: str) -> None:
    with pytest.raises(FlagError, match="invalid value"):
        goflags.parse([word], managerflags.FLAGS)


def test_reference_names_every_flag_with_its_default() -> None:
    text = REFERENCE.read_text()
    prefix = "leader-elect-"
    for flag in managerflags.FLAGS:
        short = f"`-{flag.name.removeprefix(prefix)}`"
        assert f"`--{flag.name}`" in text or short in text, flag.name
    example = text.partition("```yaml\n")[2].partition("```")[0]
    assert configuration.decode(yaml.safe_load(example)) == structs.replace(
        Configuration(), tls=TLS(min_version="VersionTLS12")
    )
