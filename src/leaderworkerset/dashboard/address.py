"""The addresses of pages: which view of what, in which form. Pure.

Below the base of the server, `` is Now, `sets/NAMESPACE/NAME` a LeaderWorkerSet, `sets/NAMESPACE/NAME/rollout` and
`…/logs` its rollout and logs, and `disaggregated/NAMESPACE/NAME` a DisaggregatedSet.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import quote

from kuberuntime.objects.meta import ObjectKey

NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


NOBODY: Final = ObjectKey("", "")
"""The key of pages that are about no single object."""


class Subject(StrEnum):
    """What a page is about; the value is the word in its address."""

    NOW = ""
    SET = "sets"
    ROLLOUT = "rollout"
    LOGS = "logs"
    WHOLE = "disaggregated"


class Arrangement(StrEnum):
    """What the rows of a set's grid are."""

    GROUP = "group"
    NODE = "node"
    REVISION = "revision"


class Form(StrEnum):
    """How a page is written: for the eye, as a plain table, as text to copy, or as a file that needs no server."""

    PAGE = "page"
    TABLE = "table"
    TEXT = "text"
    FILE = "file"


class NoSuchPageError(ValueError):
    """An address that no page has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One page. `key` names the set of a page that is about one."""

    subject: Subject
    key: ObjectKey = NOBODY
    arrangement: Arrangement = Arrangement.GROUP
    form: Form = Form.PAGE

    def path(self) -> str:
        """Return the path below the base of the server."""
        place = f"{quote(self.key.namespace)}/{quote(self.key.name)}"
        match self.subject:
            case Subject.NOW:
                return self.subject.value
            case Subject.SET | Subject.WHOLE:
                return f"{self.subject.value}/{place}"
            case Subject.ROLLOUT | Subject.LOGS:
                return f"{Subject.SET.value}/{place}/{self.subject.value}"


def parse(path: str, query: Mapping[str, str]) -> Address:
    """Read an address; raise `NoSuchPageError`.

    >>> parse("sets/prod/web", {"by": "node"}).path(), parse("sets/prod/web/logs", {}).subject.value
    ('sets/prod/web', 'logs')
    """
    parts = path.split("/") if path else []
    try:
        arrangement = Arrangement(query.get("by", Arrangement.GROUP))
        form = Form(query.get("as", Form.PAGE))
    except ValueError as error:
        raise NoSuchPageError(str(error)) from error
    subject, key = _place(parts)
    return Address(subject=subject, key=key, arrangement=arrangement, form=form)


def _place(parts: Sequence[str]) -> tuple[Subject, ObjectKey]:
    match list(parts):
        case []:
            return Subject.NOW, NOBODY
        case ["sets", namespace, name]:
            return Subject.SET, _key(namespace, name)
        case ["sets", namespace, name, "rollout"]:
            return Subject.ROLLOUT, _key(namespace, name)
        case ["sets", namespace, name, "logs"]:
            return Subject.LOGS, _key(namespace, name)
        case ["disaggregated", namespace, name]:
            return Subject.WHOLE, _key(namespace, name)
        case _:
            raise NoSuchPageError("/".join(parts))


def _key(namespace: str, name: str) -> ObjectKey:
    if not NAME.fullmatch(namespace) or not NAME.fullmatch(name):
        raise NoSuchPageError(f"{namespace}/{name}")
    return ObjectKey(namespace, name)
