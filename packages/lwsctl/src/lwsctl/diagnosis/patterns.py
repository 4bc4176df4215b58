"""Finds causes based on messages in the cluster. Each cause has a stage, a pattern, a sentence and next steps. Pure.

A message is the reason that the view shows for a rank (WHY), so that `lws get` and a diagnosis never differ.
Sentences and steps can use named groups of the pattern, and `pod`, `place`, `name`, `namespace`, `node`, `others`,
`kubectl` and `lws`. Each finding has a step without kubectl, unless the cause only occurs in Kubernetes.
"""

import re
from itertools import islice
from re import Match
from typing import Final

from msgspec import Struct

from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.finding import Finding
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.ranks import Stage
from lwsctl.model.groups import Rank

DISTINCT: Final = 500
"""The maximum number of distinct messages that are matched with a pattern.

Ranks with other messages are not counted.
"""

READ: Final = 4096
"""The maximum number of characters of a message that are matched with a pattern."""


class StageMessage(Struct, frozen=True):
    """Finds the first rank at a stage that has a matching message."""

    stage: Stage
    pattern: str
    sentence: str
    steps: tuple[str, ...]

    def __call__(self, observed: Observed) -> Finding | None:
        """Search the ranks."""
        pattern = re.compile(self.pattern)
        members = observed.ranks_at(self.stage)
        texts = islice(dict.fromkeys(rank.why for rank in members), DISTINCT)  # most messages are equal
        matches = {why: pattern.search(why[:READ]) for why in texts}
        hits = [(rank, match) for rank in members if (match := matches.get(rank.why))]
        if not hits:
            return None
        rank, match = hits[0]
        words = message_values(observed, rank, match) | {"others": ranks.others_suffix(len(hits))}
        return Finding(
            subject=ranks.pod_subject(rank),
            sentence=self.sentence.format(**words),
            evidence=(f"{rank.pod}: {ranks.quote_message(rank.why)}",),
            steps=tuple(step.format(**words) for step in self.steps),
        )


def message_values(observed: Observed, rank: Rank, match: Match[str] | None = None) -> dict[str, str]:
    """Return the values that sentences and next steps for a rank can contain."""
    captures = {name: " ".join((value or "").split()) for name, value in match.groupdict().items()} if match else {}
    return captures | {
        "pod": rank.pod,
        "place": f"{observed.view.name}/{rank.place}",
        "name": observed.view.name,
        "template": observed.template,
        "namespace": observed.view.namespace,
        "node": rank.node,
        "kubectl": observed.kubectl("").rstrip(),
        "lws": observed.lws("").rstrip(),
        "anywhere": observed.commands.lws,
    }
