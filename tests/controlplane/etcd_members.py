"""Configures etcd with one or more members, and finds the leader.

In: the number of members. Out: members with addresses on loopback, the flags of each, and the answers of their status.
"""

import contextlib
import json
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Member:
    """An etcd member, with its client and peer addresses."""

    name: str
    client: str
    peer: str


def members_at(ports: Sequence[int]) -> tuple[Member, ...]:
    """Return one member for each pair of ports. A single member has the name `etcd`.

    >>> [member.name for member in members_at([1, 2])], [member.name for member in members_at([1, 2, 3, 4])]
    (['etcd'], ['etcd-0', 'etcd-1'])
    """
    pairs = list(zip(ports[::2], ports[1::2], strict=True))
    return tuple(
        Member(
            name="etcd" if len(pairs) == 1 else f"etcd-{index}",
            client=f"http://127.0.0.1:{client}",
            peer=f"http://127.0.0.1:{peer}",
        )
        for index, (client, peer) in enumerate(pairs)
    )


def flags_of(member: Member, members: Sequence[Member], directory: Path) -> list[str]:
    """Return the flags of a member. Disk synchronization is disabled because test data need not be durable."""
    return [
        f"--name={member.name}",
        f"--data-dir={directory / member.name}",
        f"--listen-client-urls={member.client}",
        f"--advertise-client-urls={member.client}",
        f"--listen-peer-urls={member.peer}",
        f"--initial-advertise-peer-urls={member.peer}",
        f"--initial-cluster={','.join(f'{one.name}={one.peer}' for one in members)}",
        "--unsafe-no-fsync",
    ]


def leader_of(members: Sequence[Member]) -> Member | None:
    """Return the member that reports itself as the leader."""
    statuses = ((member, _status(member)) for member in members)
    return next((one for one, status in statuses if status and status["header"]["member_id"] == status["leader"]), None)


def knows_leader(member: Member) -> bool:
    """Return whether a member responds and belongs to the cluster of the other members."""
    return bool(_status(member).get("leader"))


def _status(member: Member) -> Mapping[str, Any]:
    """Send a request to a member through its JSON gateway. Return an empty result if it does not respond."""
    request = urllib.request.Request(f"{member.client}/v3/maintenance/status", b"{}")
    with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=2) as answer:
        status: dict[str, Any] = json.load(answer)
        return status
    return {}
