"""Tests kubectl-style command lines, with options in any position, short options with `=`, and kinds first."""

from typing import Any

import click
import pytest
from tests.typed import read

from lwsctl.cli import app
from lwsctl.cli.shell.kubectlparser import cluster_option_values


@pytest.mark.parametrize(
    ("line", "cluster", "arguments"),
    [
        ("lws get web -n prod --local", {"namespace": "prod", "local": "default"}, {"names": ("web",)}),
        ("lws --context a get --context=b", {"context_name": "b"}, {"names": ()}),
        ("lws rollout -nprod status web", {"namespace": "prod"}, {"name": "web"}),
        ("lws -n=prod rollout status web --local=x", {"namespace": "prod", "local": "x"}, {"name": "web"}),
        ("lws apply --dry-run --local -f web.yaml", {"local": "default"}, {"dry_run": "server"}),
        ("lws logs web --grep --local -nprod", {"namespace": "prod"}, {"grep": "--local"}),
        ("lws get web -o=name -l=a=b", {}, {"form": "name", "selector": "a=b"}),
        ("lws exec web/0 -- ls -n", {}, {"words": ("ls", "-n")}),
        ("lws exec -it web/0 -c main ls -n", {}, {"words": ("ls", "-n"), "container": "main"}),
        ("lws exec web/0 -n prod -- ls --local", {"namespace": "prod"}, {"words": ("ls", "--local")}),
        ("lws up --stub demo", {}, {"stub": ("missing",), "name": "demo"}),
        ("lws delete lws web --wait=false", {}, {"names": ("web",), "waits": False}),
        ("lws delete lws/web api", {}, {"names": ("lws/web", "api")}),
        ("lws get lws", {}, {"names": ()}),
        ("lws wait lws", {}, {"names": ("lws",)}),
        ("lws describe leaderworkersets.leaderworkerset.x-k8s.io web", {}, {"names": ("web",)}),
        ("lws manager --kubeconfig=x", {}, {"words": ("--kubeconfig=x",)}),
    ],
)
def test_command_line_is_parsed_as_kubectl_does(line: str, cluster: dict[str, str], arguments: dict[str, Any]) -> None:
    context = read(line)
    assert cluster_option_values(context) == cluster
    assert {name: context.params.get(name) for name in arguments} == arguments


def test_help_of_a_command_omits_cluster_options() -> None:
    command = app.lws.get_command(click.Context(app.lws), "get")
    assert command is not None
    assert "Path to the kubeconfig" not in command.get_help(click.Context(command))
    assert "Path to the kubeconfig" in app.lws.get_help(click.Context(app.lws))
