"""Cleans text of tenants and applications, and masks secrets, before it is displayed or stored.

The functions are pure.

`mask_message` is for one message: bounded, cleaned (`untrustedtext.py`) and masked. `Mask` is for several texts with known values,
of any length. Both are linear in the length of the text, and neither recurses into it.

Known values, from Secrets and from variables with a secret name, are replaced in all text. Other secrets are
recognized by their form or by the preceding name (`secretpatterns.py`), which cannot find all secrets. Pass
multi-line text as a whole, because keys can span several lines.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from kuberuntime.objects import meta, untrustedtext
from kuberuntime.objects.meta import JSONObject
from kuberuntime.texts.secretpatterns import (
    FORMS,
    HARMLESS,
    HARMLESS_EXCEPT,
    LIKELY,
    NAMED,
    NAMED_VALUES,
    OF_PATHS,
    PATH,
    PHRASE,
    PLAIN,
    NamedValue,
    lower,
    may_match,
)

MASK: Final = "[masked]"
SHORTEST: Final = 6
"""The minimum number of characters of a secret. Shorter values are usually ordinary words and numbers."""

SHORTEST_PIN: Final = 4
LONGEST_COUNT: Final = 8
"""The minimum number of digits of a secret number.

A number named `token` has a higher minimum, because it is often a token count.
"""

LONGEST_NAME: Final = 60
"""The number of characters that are read before a word such as `token` to find the start of the name."""

LONGEST_PATH: Final = 256

WORD: Final = re.compile(PHRASE, re.IGNORECASE)
CHOSEN: Final = re.compile(LIKELY)
"""A list element that precedes a password, and the password."""

BEFORE: Final = re.compile(r"(?:\b[a-z]{1,10} )?[\w.-]*\Z", re.IGNORECASE)


class Mask:
    """Masks secrets in text. `count` is the number of replaced values."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = sorted({value for value in values if len(value) >= SHORTEST}, key=len, reverse=True)
        self.count = 0

    def text(self, text: str) -> str:
        """Clean the text, and mask possible secrets."""
        text = untrustedtext.clean(text)
        for value in self._values:
            if occurrences := text.count(value):
                self.count += occurrences
                text = text.replace(value, MASK)
        lowered = lower(text)
        for form in FORMS:
            if may_match(form.words, lowered):
                text = form.pattern.sub(self._form, text)
        for pattern in NAMED_VALUES:
            if may_match(pattern.words, lowered):
                text = self._without(pattern, text)
        return text

    def lines(self, lines: Iterable[str]) -> list[str]:
        """Mask the lines of a text. A key that spans several lines is replaced with one line."""
        return self.text("\n".join(lines)).splitlines()

    def object(self, value: Any) -> Any:
        """Return an API object with masked text, environment variables, and option values in lists."""
        match value:
            case str():
                return self.text(value)
            case {"name": str(name), "value": str(secret)} if _is_secret(name, secret):
                self.count += 1
                return {key: MASK if key == "value" else self.object(field_value) for key, field_value in value.items()}
            case dict():
                return {key: self.object(field_value) for key, field_value in value.items()}
            case list():
                return [self._word(before, item) for before, item in zip(("", *value), value, strict=False)]
        return value

    def data(self, data: Mapping[str, str]) -> dict[str, str]:
        """Return the data of a ConfigMap, and mask the values of keys with a secret name."""
        return {key: self.text(value) if not _is_secret(key, value) else MASK for key, value in data.items()}

    def _word(self, before: Any, word: Any) -> Any:
        is_value = isinstance(before, str) and isinstance(word, str) and "=" not in before
        is_option = is_value and before.startswith("-") and not word.startswith("-")
        if (is_option and _is_secret(before, word)) or (is_value and WORD.fullmatch(before) and CHOSEN.fullmatch(word)):
            self.count += 1
            return MASK
        return self.object(word)

    def _form(self, match: re.Match[str]) -> str:
        if match.lastgroup == "kept":
            return match[0]
        self.count += 1
        return MASK

    def _without(self, form: NamedValue, text: str) -> str:
        """Return the text without values after secret names. Each name and each value is read once."""
        pieces: list[str] = []
        at = begin = 0
        while head := form.head.search(text, begin):
            before = BEFORE.search(text, max(0, head.start() - LONGEST_NAME), head.start())
            if _is_harmless_name(f"{before[0] if before else ''}{head[0][-LONGEST_NAME:]}".rstrip(" \t:=|\\\"'")):
                begin = max(head.end(), head.start() + 1)
                continue
            match = form.value.match(text, head.end()) or form.pattern.match(text, head.start())
            if match is None:
                begin = head.start() + 1
                continue
            group = "bare" if match["bare"] else "quoted"
            value, begin = match[group], match.end()
            is_masked = value.startswith(MASK) or value.endswith(MASK)
            if not (is_masked or _is_harmless_value(head[0], value) or _is_about_path(text, head, value)):
                pieces += (text[at : match.start(group)], MASK)
                at = match.end(group)
        self.count += len(pieces) // 2
        return "".join([*pieces, text[at:]])


def _is_harmless_name(name: str) -> bool:
    return bool(HARMLESS.search(name)) and not HARMLESS_EXCEPT.search(name)


def _is_about_path(text: str, head: re.Match[str], value: str) -> bool:
    """Return whether a name is the last element of a path, and the next words describe the file at this path."""
    before = text[max(0, head.start() - LONGEST_PATH) : head.start()]
    return head[0][-1].isspace() and bool(OF_PATHS.fullmatch(value)) and bool(PATH.search(before))


def _is_harmless_value(name: str, value: str) -> bool:
    """Return whether a value is not secret despite its name, such as a token count with few digits."""
    if value.isdecimal():
        return len(value) < (LONGEST_COUNT if "token" in name.lower() else SHORTEST_PIN)
    return bool(PLAIN.fullmatch(value))


def _is_secret(name: str, value: str) -> bool:
    return bool(NAMED.search(name) and value and not _is_harmless_value(name, value)) and not _is_harmless_name(name)


@lru_cache(maxsize=4096)
def mask_message(text: str) -> str:
    """Shorten and clean a message of an application or tenant, and mask possible secrets.

    >>> mask_message("connecting with token=a1b2c3d4")
    'connecting with token=[masked]'
    """
    return Mask().text(untrustedtext.shorten(text))


def secret_values(secrets: Iterable[JSONObject], pods: Sequence[JSONObject]) -> Iterator[str]:
    """Yield the values of Secrets (plain and base64-encoded) and of environment variables with a secret name.

    A multi-line value is yielded line by line, as applications print it.
    """
    for secret in secrets:
        for encoded in (secret.get("data") or {}).values():
            yield encoded
            try:
                text = base64.b64decode(encoded).decode()
            except (binascii.Error, ValueError, TypeError):
                continue  # not text that a process prints in a log line
            yield from map(str.strip, text.splitlines())
    for pod in pods:
        spec = meta.spec(pod)
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
            for variable in container.get("env") or ():
                value = str(variable.get("value") or "")
                if _is_secret(str(variable.get("name")), value):
                    yield value
