"""Builds the commands for page actions. A user could enter each of these commands. Pure.

The server runs `lws` with exactly these arguments. It first adds `--dry-run` and shows the output. An action has the
same effect as the command, with the permissions of the same user. Pages cannot request anything else.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol

from kuberuntime.objects import decimals
from leaderworkerset.api.groupname import parse_group_name
from lwsctl.dashboard.address import NAME

MOST_GROUPS: Final = 100_000


class ActionError(ValueError):
    """Raised if the action is not available. The message contains the reason."""


class Verb(StrEnum):
    """The verbs of actions."""

    SCALE = "scale"
    RESTART = "restart"
    RESTART_GROUP = "restart-group"
    RECOVER_GROUP = "recover-group"
    UNDO = "undo"
    PAUSE = "pause"
    RESUME = "resume"
    SCALE_ROLE = "scale-role"


class Runner(Protocol):
    """A function that runs `lws` with arguments on the displayed cluster.

    It returns whether the exit code is 0, and the output.
    """

    async def __call__(self, arguments: Sequence[str]) -> tuple[bool, str]:
        """Run the command until it exits."""


def command_arguments(action: Mapping[str, object]) -> list[str]:
    """Return the `lws` arguments for an action. Raise `ActionError` if the action is not available.

    >>> command_arguments({"verb": "scale", "namespace": "prod", "name": "web", "groups": "3"})
    ['-n', 'prod', 'scale', 'web', '--replicas', '3']
    """
    namespace, name = _name(action, "namespace"), _name(action, "name")
    try:
        verb = Verb(str(action.get("verb")))
    except ValueError as error:
        raise ActionError(f"verb: Unsupported value: {action.get('verb')!r}: use one of {', '.join(Verb)}") from error
    place = ("-n", namespace)
    match verb:
        case Verb.SCALE:
            return [*place, "scale", name, "--replicas", str(_groups(action))]
        case Verb.RESTART:
            return [*place, "restart", name]
        case Verb.RESTART_GROUP:
            return [*place, "restart", f"{name}/{_group(action)}"]
        case Verb.RECOVER_GROUP:
            return [*place, "recover", f"{name}/{_group(action)}"]
        case Verb.UNDO | Verb.PAUSE | Verb.RESUME:
            return [*place, "rollout", verb.value, name]
        case Verb.SCALE_ROLE:
            return [*place, "scale", name, "--role", _name(action, "role"), "--replicas", str(_groups(action))]


def _name(action: Mapping[str, object], key: str) -> str:
    name = action.get(key)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ActionError(f"{key}: Invalid value: {name!r}: must be the name of an object on the page")
    return name


def _groups(action: Mapping[str, object]) -> int:
    number = decimals.natural(str(action.get("groups")))
    if number is None or number > MOST_GROUPS:
        raise ActionError(f"groups: Invalid value: {action.get('groups')!r}: must be a number up to {MOST_GROUPS}")
    return number


def _group(action: Mapping[str, object]) -> str:
    group = str(action.get("group"))
    if parse_group_name(group) is None:
        raise ActionError(f"group: Invalid value: {group!r}: must be a group of the set")
    return group
