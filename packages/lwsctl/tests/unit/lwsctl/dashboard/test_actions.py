"""Tests that only a few commands are available as actions, with names and numbers as parameters."""

import pytest

from lwsctl.dashboard.actions import ActionError, Verb, command_arguments

WEB = {"namespace": "prod", "name": "web"}


@pytest.mark.parametrize(
    ("asked", "command"),
    [
        ({"verb": "scale", "groups": "3"}, "-n prod scale web --replicas 3"),
        ({"verb": "restart"}, "-n prod restart web"),
        ({"verb": "restart-group", "group": "2"}, "-n prod restart web/2"),
        ({"verb": "restart-group", "group": "95e88034"}, "-n prod restart web/95e88034"),
        ({"verb": "recover-group", "group": "2"}, "-n prod recover web/2"),
        ({"verb": "undo"}, "-n prod rollout undo web"),
        ({"verb": "pause"}, "-n prod rollout pause web"),
        ({"verb": "resume"}, "-n prod rollout resume web"),
        ({"verb": "scale-role", "role": "decode", "groups": "3"}, "-n prod scale web --role decode --replicas 3"),
    ],
)
def test_every_verb_becomes_a_command(asked: dict[str, object], command: str) -> None:
    assert " ".join(command_arguments(WEB | asked)) == command
    assert asked["verb"] in list(Verb)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"verb": "delete"},
        {"verb": ["scale"]},
        {"verb": "restart", "name": "--force"},
        {"verb": "restart", "name": "web/0"},
        {"verb": "restart", "name": "web;rm"},
        {"verb": "restart", "name": 3},
        {"verb": "restart", "namespace": "-A"},
        {"verb": "restart", "namespace": ""},
        {"verb": "scale"},
        {"verb": "scale", "groups": "-1"},
        {"verb": "scale-role", "groups": "1"},
        {"verb": "scale-role", "groups": "1", "role": "--force"},
        {"verb": "scale", "groups": "9" * 5000},
        {"verb": "scale", "groups": "100001"},
        {"verb": "scale", "groups": "1 --force"},
        {"verb": "restart-group"},
        {"verb": "restart-group", "group": "0/1"},
        {"verb": "restart-group", "group": "--force"},
    ],
)
def test_other_requests_are_rejected(asked: dict[str, object]) -> None:
    with pytest.raises(ActionError):
        command_arguments(WEB | asked)
