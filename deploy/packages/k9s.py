"""Builds k9s files with columns of the kinds from their CRDs, and keys that run `lws` for the selected object."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.resources import LEADERWORKERSETS

PLACE: Final = '--context "$CONTEXT" -n "$NAMESPACE"'
PAGED: Final = " 2>&1 | less -R"


@dataclass(frozen=True, slots=True)
class Key:
    """A key, the command that it runs for a LeaderWorkerSet, and whether k9s asks for confirmation."""

    shortcut: str
    words: str
    description: str
    is_followed: bool = False
    """The command runs until the user or a timeout stops it, so that its output is not paged."""
    asks: bool = False


KEYS: Final = (
    Key("Shift-W", "explain", "Explain why it is not ready"),
    Key("Shift-T", "tree --ranks", "Show groups and ranks"),
    Key("Shift-L", "logs -f", "Show logs of all ranks", is_followed=True),
    Key("Shift-H", "rollout history", "Revisions"),
    Key("Shift-V", "rollout status", "Follow the rollout", is_followed=True),
    Key("Shift-U", "rollout undo", "Undo the rollout", asks=True),
)


def plugins() -> JSONObject:
    """Return `plugins.yaml`."""
    return {"plugins": {f"lws-{key.words.split(' -')[0].replace(' ', '-')}": _plugin(key) for key in KEYS}}


def _plugin(key: Key) -> JSONObject:
    command = f'lws {PLACE} {key.words} "$NAME"'
    return {
        "shortCut": key.shortcut,
        "description": key.description,
        "scopes": [LEADERWORKERSETS.plural],
        "command": "sh",
        "args": ["-c", command if key.is_followed else command + PAGED],
        "background": False,
        "confirm": key.asks,
    }


def views(definitions: Sequence[JSONObject]) -> JSONObject:
    """Return `views.yaml`, with the CRD columns of each kind."""
    by_kind: JSONObject = {}
    for spec in (definition["spec"] for definition in definitions):
        (version,) = spec["versions"]
        first = ["NAMESPACE"] if spec["scope"] == "Namespaced" else []
        columns = [_column(column) for column in version.get("additionalPrinterColumns") or []]
        others = [column for column in columns if column != "AGE"]
        by_kind[f"{spec['group']}/{version['name']}/{spec['names']['plural']}"] = {
            "columns": [*first, "NAME", *others, "AGE"]
        }
    return {"views": by_kind}


def _column(column: JSONObject) -> str:
    name = column["name"].upper()
    return name if name == "AGE" else f"{name}:{column['jsonPath']}"
