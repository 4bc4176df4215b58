"""Options that select a cluster may stand before or after a command, as with kubectl: they are moved to the front."""

from collections.abc import Sequence
from typing import Final

VALUE_OPTIONS: Final = ("-n", "--namespace", "--context", "--kubeconfig")
LOCAL: Final = "--local"


def hoist(words: Sequence[str]) -> list[str]:
    """Move the options that select a cluster in front of the command; `--` ends the search.

    >>> hoist(["get", "web", "-n", "prod", "--local"])
    ['-n', 'prod', '--local=default', 'get', 'web']
    >>> hoist(["exec", "web/0", "--", "ls", "-n"])
    ['exec', 'web/0', '--', 'ls', '-n']
    """
    front: list[str] = []
    rest: list[str] = []
    words = list(words)
    while words:
        word = words.pop(0)
        if word == "--":
            rest += [word, *words]
            break
        if word == LOCAL:
            front.append(f"{LOCAL}=default")
        elif word in VALUE_OPTIONS and words:
            front += [word, words.pop(0)]
        elif word.startswith((*(f"{option}=" for option in VALUE_OPTIONS if option != "-n"), f"{LOCAL}=")):
            front.append(word)
        else:
            rest.append(word)
    return front + rest
