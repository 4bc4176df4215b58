"""Builds nf_tables rules that drop packets between pods, and the rule that masquerades outgoing packets.

The rules that drop packets (all, a share, or those beyond a rate) are in one table, which is replaced as a whole. They
are at the forward hook of the caller's network namespace, which all packets between pods pass, whichever bridges they
are on.
"""

import socket
import struct
from collections.abc import Sequence
from typing import NamedTuple

from .netlink import attribute
from .nftables import (
    ChainHook,
    Message,
    delete_table,
    expression,
    large_number,
    nested_attribute,
    new_chain,
    new_rule,
    new_table,
    number,
    perform,
)

_TABLE = "localkube-faults"
_CHAIN = "between"
_FORWARD = ChainHook("filter", 2, 0)
_POSTROUTING = ChainHook("nat", 4, 100)
_META_OUTPUT_INTERFACE = 5
_NETWORK_HEADER = 1
_SOURCE, _DESTINATION, _LENGTH = 12, 16, 4  # the offset of an IPv4 address in its header
_REGISTER = 1
_EQUAL, _LESS = 0, 2
_RANDOM = 1
_PER_MILLION = 10**6
_BYTES = 1
_OVER = 1
_VERDICT = 0
_DROP = 0
_SECOND = 1
_LEAST_BURST = 1 << 16
"""The number of bytes that can pass immediately at any rate.

TCP between pods sends packets of this size, which must not all be dropped.
"""


class PacketRule(NamedTuple):
    """A rule that drops packets from one address to another. An empty address matches any address.

    `share` (0 to 1) is the dropped share; with `rate` only packets beyond so many bytes per second are dropped.
    """

    source: str
    destination: str
    share: float = 1.0
    rate: int = 0


def build_rules(rules: Sequence[PacketRule]) -> list[Message]:
    """Return the messages that replace all rules by these rules."""
    cleared = [new_table(_TABLE), delete_table(_TABLE)]  # create the table first, so that deleting it succeeds
    if not rules:
        return cleared
    created = [new_table(_TABLE), new_chain(_TABLE, _CHAIN, _FORWARD)]
    return [*cleared, *created, *(new_rule(_TABLE, _CHAIN, *_expressions(rule)) for rule in rules)]


def replace(rules: Sequence[PacketRule]) -> None:
    """Replace all rules in the network namespace of the caller."""
    perform(build_rules(rules), "drop packets between pods")


def _expressions(rule: PacketRule) -> list[bytes]:
    messages = []
    for address, offset in ((rule.source, _SOURCE), (rule.destination, _DESTINATION)):
        if address:
            messages += [_load(offset), _compare(_EQUAL, socket.inet_aton(address))]
    if rule.share < 1:
        lost = round(rule.share * _PER_MILLION)
        messages += [
            expression("numgen", number(1, _REGISTER), number(2, _PER_MILLION), number(3, _RANDOM)),
            # the generator uses the machine's byte order, but comparisons are bytewise, so swap first
            expression(
                "byteorder", number(1, _REGISTER), number(2, _REGISTER), number(3, 1), number(4, 4), number(5, 4)
            ),
            _compare(_LESS, lost.to_bytes(4)),
        ]
    if rule.rate:
        burst = max(_LEAST_BURST, rule.rate // 4)
        messages.append(
            expression(
                "limit",
                large_number(1, rule.rate),
                large_number(2, _SECOND),
                number(3, burst),
                number(4, _BYTES),
                number(5, _OVER),
            )
        )
    verdict = nested_attribute(2, nested_attribute(2, number(1, _DROP)))
    return [*messages, expression("immediate", number(1, _VERDICT), verdict)]


def masquerade(interface: int) -> None:
    """Masquerade packets that are sent through this interface, in the network namespace of the caller."""
    perform(build_masquerade(interface), "masquerade")


def build_masquerade(interface: int) -> list[Message]:
    """Return the messages that create the table, chain and rule for packets that are sent through this interface."""
    output = struct.pack("=I", interface)  # compared with a register, which uses the byte order of the machine
    loaded = expression("meta", number(1, _REGISTER), number(2, _META_OUTPUT_INTERFACE))
    return [
        new_table("localkube"),
        new_chain("localkube", "out", _POSTROUTING),
        new_rule("localkube", "out", loaded, _compare(_EQUAL, output), expression("masq")),
    ]


def _load(offset: int) -> bytes:
    return expression(
        "payload", number(1, _REGISTER), number(2, _NETWORK_HEADER), number(3, offset), number(4, _LENGTH)
    )


def _compare(operation: int, value: bytes) -> bytes:
    return expression("cmp", number(1, _REGISTER), number(2, operation), nested_attribute(3, attribute(1, value)))
