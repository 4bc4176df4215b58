"""Causes that a message of the cluster names: a stage, a pattern of the message, a sentence and steps. Pure.

A message is what the view gives as the reason of a rank (WHY), so that `lws get` and a diagnosis never differ. Named
parts of the pattern are words of the sentence and of the steps, beside `pod`, `place`, `name`, `namespace`, `node`,
`others`, `kubectl` and `lws`.
"""

import re
from dataclasses import dataclass
from re import Match, Pattern
from typing import Final

from leaderworkerset.diagnosis import ranks
from leaderworkerset.diagnosis.finding import Finding
from leaderworkerset.diagnosis.observed import Observed
from leaderworkerset.diagnosis.ranks import Stage
from leaderworkerset.views.groups import Rank

READ: Final = 4096
"""Characters of a message that a pattern is tried on."""


@dataclass(frozen=True, slots=True)
class Told:
    """Finds the first rank at a stage whose reason matches."""

    stage: Stage
    pattern: str
    sentence: str
    steps: tuple[str, ...]

    def __call__(self, observed: Observed) -> Finding | None:
        """Search the ranks."""
        pattern = re.compile(self.pattern)
        found = [(rank, match) for rank in ranks.at(observed, self.stage) if (match := pattern.search(rank.why[:READ]))]
        if not found:
            return None
        rank, match = found[0]
        words = words_of(observed, rank, match) | {"others": ranks.others(len(found))}
        return Finding(
            subject=ranks.subject(rank),
            sentence=self.sentence.format(**words),
            evidence=(f"{rank.pod}: {ranks.quote(rank.why)}",),
            steps=tuple(step.format(**words) for step in self.steps),
        )


def words_of(observed: Observed, rank: Rank, match: Match[str] | None = None) -> dict[str, str]:
    """Return the words that sentences and steps about a rank are made of."""
    found = {name: " ".join((value or "").split()) for name, value in match.groupdict().items()} if match else {}
    return found | {
        "pod": rank.pod,
        "place": f"{observed.view.name}/{rank.place}",
        "name": observed.view.name,
        "namespace": observed.view.namespace,
        "node": rank.node,
        "kubectl": observed.kubectl("").rstrip(),
        "lws": observed.lws("").rstrip(),
    }


def first(pattern: "str | Pattern[str]", texts: list[str]) -> str:
    """Return the first of the texts that a pattern matches, empty where none does."""
    return next((text for text in texts if re.search(pattern, text[:READ])), "")
