"""Replaces values that look like secrets in texts of programs that are quoted or kept, and counts them. Pure.

Known values, those of Secrets and of variables that are named like one, are replaced wherever they occur. Others are
recognized by their form or by the name before them, which cannot find everything.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject

MASK: Final = "[masked]"
SHORTEST: Final = 6
"""Characters: shorter values are words and numbers that mean something else in most places."""

WORDS: Final = r"(?:passwo?r?d|passphrase|secret|token(?!s|iz)|api[_-]?key|access[_-]?key|private[_-]?key|credential)"
NAMED: Final = re.compile(WORDS, re.IGNORECASE)

ASSIGNED: Final = re.compile(
    rf"(?P<head>[\w.-]{{0,40}}{WORDS}[\w.-]{{0,40}}[\"']?\s{{0,4}}[:=]\s{{0,4}}[\"']?)(?P<value>[^\s\"',;]{{1,4096}})",
    re.IGNORECASE,
)
PLAIN: Final = re.compile(r"[-+.\d]+|true|false|none|null", re.IGNORECASE)
"""Values that are no secret, whatever they are called: numbers, as in `token=17`, and words for nothing."""

FORMS: Final = tuple(
    re.compile(form, re.DOTALL)
    for form in (
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
        r"(?<=[Bb]earer )[\w.~+/=-]{8,4096}",
        r"(?<=[Bb]asic )[\w+/=]{8,4096}",
        r"(?<=://)[^/\s:@]{1,256}:[^/\s@]{1,256}(?=@)",
        r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
        r"\beyJ[\w-]{8,2000}\.[\w-]{8,2000}\.[\w-]{8,2000}",
        r"\b(?:hf_|sk-|gh[pousr]_|glpat-|xox[abp]-)[\w-]{16,256}",
    )
)


class Mask:
    """Masks texts; `count` is how many values were replaced so far."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = sorted({one for one in values if len(one) >= SHORTEST}, key=len, reverse=True)
        self.count = 0

    def text(self, text: str) -> str:
        """Return the text without values that look like secrets."""
        for value in self._values:
            if found := text.count(value):
                self.count += found
                text = text.replace(value, MASK)
        for form in FORMS:
            text, found = form.subn(MASK, text)
            self.count += found
        return ASSIGNED.sub(self._assigned, text)

    def _assigned(self, match: re.Match[str]) -> str:
        value = match["value"]
        if PLAIN.fullmatch(value) or value.startswith(MASK):
            return match[0]
        self.count += 1
        return f"{match['head']}{MASK}"


def masked(line: str) -> str:
    """Return a line that a program said without what looks like a secret.

    >>> masked("connecting with token=a1b2c3d4")
    'connecting with token=[masked]'
    """
    return Mask().text(line)


def known(secrets: Iterable[JSONObject], pods: Sequence[JSONObject]) -> Iterator[str]:
    """Yield the values of Secrets, in plain and in base64, and those of the pods' variables that are named like secrets.

    A value of several lines is yielded line by line, as programs print it.
    """
    for secret in secrets:
        for encoded in (secret.get("data") or {}).values():
            yield encoded
            try:
                text = base64.b64decode(encoded).decode()
            except (binascii.Error, ValueError, TypeError):
                continue  # it is not text: nothing that a program prints in a line of its log
            yield from map(str.strip, text.splitlines())
    for pod in pods:
        spec = meta.spec(pod)
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
            for variable in container.get("env") or ():
                value = str(variable.get("value") or "")
                if NAMED.search(str(variable.get("name"))) and not PLAIN.fullmatch(value):
                    yield value
