"""Breaks ten rules of the contract. `test_broken_rules.py` checks that unit tests detect each violation."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule, and a change to one core module that breaks it."""

    rule: str
    module: str
    before: str
    after: str


RULES: Final = (
    Broken(
        "R-LSTS-2", "leaderworkerset/statefulsets.py", '"podManagementPolicy": "Parallel"', '"podManagementPolicy": ""'
    ),
    Broken("R-ROLL-2", "leaderworkerset/rollingupdate.py", "max(partition, limits.partition)", "partition"),
    Broken(
        "R-ROLL-7",
        "leaderworkerset/rollingupdate.py",
        "partition, total), current.partition)",
        "partition, total), total)",
    ),
    Broken(
        "R-REV-8",
        "leaderworkerset/revisions.py",
        "str(fnv1(data)).translate(HASH_ALPHABET)",
        "str(fnv1(data))",
    ),
    Broken(
        "R-REV-14",
        "leaderworkerset/revisions.py",
        "if revision_key(revision) != resolution.key]",
        "if revision_key(revision) == resolution.key]",
    ),
    Broken("R-STAT-12", "leaderworkerset/status.py", "condition.type in outcome.excludes and", "False and"),
    Broken(
        "R-WSTS-4",
        "pod/reconcile.py",
        "statefulset.build(group.lws, revised,",
        "statefulset.build(group.lws, group.lws,",
    ),
    Broken("R-POD-5", "policies/restartpolicy.py", 'propagation="Foreground"', 'propagation="Background"'),
    Broken("R-POD-8", "policies/failures.py", 'and meta.uid(statefulset) == owner["uid"]\n', "\n"),
    Broken("R-ROLL-1", "leaderworkerset/outdatedleaders.py", ", spare),", ", None),"),
)
