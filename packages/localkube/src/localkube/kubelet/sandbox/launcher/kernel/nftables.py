"""Builds nf_tables messages, and sends batches of them, so that rules do not require an external tool.

The builders are pure. Numbers are those of linux/netfilter/nf_tables.h; attributes are in network byte order.
"""

import errno
import os
import socket
import struct
from collections.abc import Sequence
from typing import NamedTuple

from .netlink import HEADER, NLM_F_ACK, NLM_F_CREATE, NLM_F_REQUEST, NLMSG_ERROR, attribute, string_attribute

_NETLINK_NETFILTER = 12
_NLM_F_APPEND = 0x800
_CHANGE = NLM_F_REQUEST | NLM_F_ACK
_BATCH_BEGIN, _BATCH_END = 0x10, 0x11
_SUBSYSTEM = 10
_NEWTABLE, _DELTABLE, _NEWCHAIN, _NEWRULE = (_SUBSYSTEM << 8 | kind for kind in (0, 2, 3, 6))
_NESTED = 0x8000


class Message(NamedTuple):
    """One message in a batch."""

    kind: int
    flags: int
    attributes: bytes


class ChainHook(NamedTuple):
    """The position of a chain: its type, the hook number, and the priority."""

    kind: str
    number: int
    priority: int


def nested_attribute(kind: int, *attributes: bytes) -> bytes:
    """Build an attribute with nested attributes."""
    return attribute(kind | _NESTED, b"".join(attributes))


def number(kind: int, value: int) -> bytes:
    """Build an attribute with 32 bits."""
    return attribute(kind, struct.pack("!I", value))


def large_number(kind: int, value: int) -> bytes:
    """Build an attribute with 64 bits."""
    return attribute(kind, struct.pack("!Q", value))


def expression(name: str, *attributes: bytes) -> bytes:
    """Build one expression of a rule."""
    return nested_attribute(1, string_attribute(1, name), nested_attribute(2, *attributes))


def new_table(table: str) -> Message:
    """Create a table if it does not exist."""
    return Message(_NEWTABLE, _CHANGE | NLM_F_CREATE, string_attribute(1, table))


def delete_table(table: str) -> Message:
    """Delete a table with its content."""
    return Message(_DELTABLE, _CHANGE, string_attribute(1, table))


def new_chain(table: str, chain: str, hook: ChainHook) -> Message:
    """Create a chain at a hook."""
    place = nested_attribute(4, number(1, hook.number), number(2, hook.priority & 0xFFFFFFFF))
    return Message(
        _NEWCHAIN,
        _CHANGE | NLM_F_CREATE,
        string_attribute(1, table) + string_attribute(3, chain) + place + string_attribute(7, hook.kind),
    )


def new_rule(table: str, chain: str, *expressions: bytes) -> Message:
    """Append a rule to a chain."""
    body = string_attribute(1, table) + string_attribute(2, chain) + nested_attribute(4, *expressions)
    return Message(_NEWRULE, _CHANGE | NLM_F_CREATE | _NLM_F_APPEND, body)


def build_batch(messages: Sequence[Message]) -> bytes:
    """Return the batch of these messages, which the kernel performs completely or not at all."""
    bound = struct.pack("!BBH", socket.AF_UNSPEC, 0, _SUBSYSTEM)
    bodies = [
        (_BATCH_BEGIN, NLM_F_REQUEST, bound),
        *(
            (message.kind, message.flags, struct.pack("!BBH", socket.AF_INET, 0, 0) + message.attributes)
            for message in messages
        ),
        (_BATCH_END, NLM_F_REQUEST, bound),
    ]
    return b"".join(
        HEADER.pack(HEADER.size + len(body), kind, flags, sequence, 0) + body
        for sequence, (kind, flags, body) in enumerate(bodies)
    )


def perform(messages: Sequence[Message], action: str) -> None:
    """Change the rules of the caller's network namespace. An error contains the action that the kernel rejected."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_NETFILTER) as kernel:
        kernel.send(build_batch(messages))
        for _ in messages:
            _, kind, _, _, _, negative = struct.unpack_from("=IHHIIi", kernel.recv(1 << 16))
            if kind == NLMSG_ERROR and negative:
                code = -negative if negative != -errno.ENOENT else errno.EOPNOTSUPP
                raise OSError(code, f"{action}: {os.strerror(code).lower()}")
