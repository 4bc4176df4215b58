"""Tests the flags of `lws operator`."""

from pathlib import Path

import pytest
import structlog

from leaderworkerset.install.operatornames import OPERATOR
from leaderworkerset.manager import clusterprocess, goflags
from leaderworkerset.operator import operatorprocess
from leaderworkerset.operator.operatorprogram import flags
from leaderworkerset.operator.verbosity import Verbosity
from lwsctl.cli import app


def test_termination_file_flag_can_be_repeated() -> None:
    """The termination file flag can be repeated (R-OP-9)."""
    given = goflags.parse(["--terminate-on-files=/a", "--terminate-on-files", "/b", "-v=4"], flags())
    assert given == {"terminate-on-files": ("/a", "/b"), "v": 4}


def test_flags_keep_no_state_between_parses() -> None:
    assert goflags.parse(["--terminate-on-files=/a"], flags()) == goflags.parse(["--terminate-on-files=/a"], flags())


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--config=x"], "flag provided but not defined: -config"),
        (["-v=loud"], 'invalid value "loud" for flag -v'),
        (["now"], "unexpected argument 'now'"),
    ],
)
def test_invalid_flags_are_rejected(words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["operator", *words]) == 2
    assert text in capsys.readouterr().err


def test_help_lists_the_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["operator", "--help"]) == 0
    assert "--terminate-on-files" in capsys.readouterr().out


def test_operator_namespace_is_read_from_the_account_or_default(tmp_path: Path) -> None:
    """The operator namespace is read from the service account, or has a default (R-OP-10)."""
    mounted = tmp_path / "namespace"
    assert clusterprocess.namespace(mounted, OPERATOR) == "openshift-lws-operator"
    mounted.write_text("operators")
    assert clusterprocess.namespace(mounted, OPERATOR) == "operators"


@pytest.mark.parametrize(
    "words",
    [
        ["operator", "--namespace=elsewhere", "--kubeconfig=/k"],
        ["--namespace", "elsewhere", "--kubeconfig", "/k", "operator"],
    ],
)
def test_operator_namespace_is_set_by_the_option(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`lws` accepts the option in any position (R-OP-10)."""
    started: list[operatorprocess.OperatorProcessSettings] = []

    async def run(settings: operatorprocess.OperatorProcessSettings, _verbosity: Verbosity) -> None:
        started.append(settings)

    monkeypatch.setattr(operatorprocess, "run_until_stopped", run)
    assert app.run(words) == 0
    assert [(one.namespace, one.kubeconfig) for one in started] == [("elsewhere", "/k")]


def test_operand_image_is_read_from_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operand image comes from an environment variable (R-OP-9, R-OP-20)."""
    started: list[operatorprocess.OperatorProcessSettings] = []

    async def run(settings: operatorprocess.OperatorProcessSettings, _verbosity: Verbosity) -> None:
        started.append(settings)

    monkeypatch.setattr(operatorprocess, "run_until_stopped", run)
    monkeypatch.setenv("RELATED_IMAGE_OPERAND_IMAGE", "example.com/lws:7")
    assert app.run(["operator", "--listen=127.0.0.1:1"]) == 0
    assert [(one.image, one.listen) for one in started] == [("example.com/lws:7", "127.0.0.1:1")]


@pytest.mark.parametrize(
    ("words", "line"), [([], '{"level":"info",'), (["--zap-encoder=console"], "\tINFO\t")], ids=["usual", "console"]
)
def test_operator_logs_have_the_requested_format(
    words: list[str], line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run(_settings: operatorprocess.OperatorProcessSettings, _verbosity: Verbosity) -> None:
        structlog.get_logger().info("hello")

    monkeypatch.setattr(operatorprocess, "run_until_stopped", run)
    assert app.run(["operator", *words]) == 0
    assert line in capsys.readouterr().err
