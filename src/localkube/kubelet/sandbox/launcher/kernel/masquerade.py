"""One rule of nf_tables: packets that leave by an interface get that interface's address.

A pure builder of the batch of messages that creates it (numbers are those of linux/netfilter/nf_tables.h; attributes
are in network byte order), and the function that sends it to the current network namespace. No program is needed for
it.
"""

import errno
import os
import socket
import struct
from typing import NamedTuple

_NETLINK_NETFILTER = 12
_NLM_F_REQUEST, _NLM_F_ACK, _NLM_F_CREATE, _NLM_F_APPEND = 0x1, 0x4, 0x400, 0x800
_NLMSG_ERROR = 2
_BATCH_BEGIN, _BATCH_END = 0x10, 0x11
_SUBSYSTEM = 10
_NEWTABLE, _NEWCHAIN, _NEWRULE = (_SUBSYSTEM << 8 | kind for kind in (0, 3, 6))
_NESTED = 0x8000
_TABLE = "localkube"
_CHAIN = "out"
_POSTROUTING = 4
_PRIORITY_SOURCE_NAT = 100
_META_OUTPUT_INTERFACE = 5
_REGISTER = 1
_EQUAL = 0

_HEADER = struct.Struct("=IHHII")


class _Message(NamedTuple):
    kind: int
    flags: int
    family: int
    resource: int
    attributes: bytes


def _attribute(kind: int, payload: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(payload), kind) + payload + b"\0" * (-len(payload) % 4)


def _nested(kind: int, *attributes: bytes) -> bytes:
    return _attribute(kind | _NESTED, b"".join(attributes))


def _text(kind: int, value: str) -> bytes:
    return _attribute(kind, value.encode() + b"\0")


def _number(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack("!I", value))


def _expression(name: str, *attributes: bytes) -> bytes:
    return _nested(1, _text(1, name), _nested(2, *attributes))


def build_masquerade(interface: int) -> bytes:
    """Return the batch that creates table, chain and rule for packets that leave by the interface of this number."""
    change = _NLM_F_REQUEST | _NLM_F_ACK | _NLM_F_CREATE
    hook = _nested(4, _number(1, _POSTROUTING), _number(2, _PRIORITY_SOURCE_NAT))
    output = struct.pack("=I", interface)  # compared with a register, which is in the machine's own order
    rule = _nested(
        4,
        _expression("meta", _number(1, _REGISTER), _number(2, _META_OUTPUT_INTERFACE)),
        _expression("cmp", _number(1, _REGISTER), _number(2, _EQUAL), _nested(3, _attribute(1, output))),
        _expression("masq"),
    )
    messages = [
        _Message(_BATCH_BEGIN, _NLM_F_REQUEST, socket.AF_UNSPEC, _SUBSYSTEM, b""),
        _Message(_NEWTABLE, change, socket.AF_INET, 0, _text(1, _TABLE)),
        _Message(_NEWCHAIN, change, socket.AF_INET, 0, _text(1, _TABLE) + _text(3, _CHAIN) + hook + _text(7, "nat")),
        _Message(_NEWRULE, change | _NLM_F_APPEND, socket.AF_INET, 0, _text(1, _TABLE) + _text(2, _CHAIN) + rule),
        _Message(_BATCH_END, _NLM_F_REQUEST, socket.AF_UNSPEC, _SUBSYSTEM, b""),
    ]
    return b"".join(_encode(message, number) for number, message in enumerate(messages))


def _encode(message: _Message, sequence: int) -> bytes:
    body = struct.pack("!BBH", message.family, 0, message.resource) + message.attributes
    return _HEADER.pack(_HEADER.size + len(body), message.kind, message.flags, sequence, 0) + body


def masquerade(interface: int) -> None:
    """Create the rule in the network namespace of the caller."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_NETFILTER) as kernel:
        kernel.send(build_masquerade(interface))
        for _ in range(3):
            _, kind, _, _, _, negative = struct.unpack_from("=IHHIIi", kernel.recv(1 << 16))
            if kind == _NLMSG_ERROR and negative:
                number = -negative if negative != -errno.ENOENT else errno.EOPNOTSUPP
                raise OSError(number, f"masquerade: {os.strerror(number).lower()}")
