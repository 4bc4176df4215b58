"""Counts the requests of one user in the audit log, because the manager's own counters are not a proof.

In: the user and the directory of a control plane. Out: the API server's flags, and its audit events as plain objects.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit log of an API server, and its policy file."""

    directory: Path

    def flags(self, user: str) -> tuple[str, ...]:
        """Write a policy that records all requests of only this user. Return the API server flags for the policy."""
        policy = {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata", "users": [user]}, {"level": "None"}],
        }
        file = self.directory / "audit-policy.yaml"
        file.write_text(json.dumps(policy))
        return (f"--audit-policy-file={file}", f"--audit-log-path={self._log}")

    def mark(self) -> int:
        """Return the number of events, after which `events` can return later events."""
        return len(self._lines())

    def events(self, since: int = 0) -> list[dict[str, Any]]:
        """Return the events after a position."""
        return [json.loads(line) for line in self._lines()[since:]]

    def writes(self, since: int = 0) -> Counter[str]:
        """Count write requests by verb and resource, including rejected requests."""
        return Counter(described(event) for event in self.events(since) if event["verb"] in WRITES)

    @property
    def _log(self) -> Path:
        return self.directory / "audit.log"

    def _lines(self) -> list[str]:
        """Return the complete lines."""
        text = self._log.read_text() if self._log.exists() else ""
        return text[: text.rfind("\n") + 1].splitlines()


def described(event: Mapping[str, Any]) -> str:
    """Return the verb, and the resource including the subresource.

    >>> described({"verb": "patch", "objectRef": {"resource": "pods", "subresource": "status"}})
    'patch pods/status'
    """
    reference = event.get("objectRef") or {"resource": event["requestURI"]}
    return f"{event['verb']} {'/'.join(reference[name] for name in ('resource', 'subresource') if name in reference)}"
