"""One rule of nf_tables: packets that leave by an interface get that interface's address."""

import struct

from .nftables import ChainHook, Message, attribute, expression, nested, new_chain, new_rule, new_table, number, perform

_TABLE = "localkube"
_CHAIN = "out"
_POSTROUTING = ChainHook("nat", 4, 100)
_META_OUTPUT_INTERFACE = 5
_REGISTER = 1
_EQUAL = 0


def build_masquerade(interface: int) -> list[Message]:
    """Return the messages that create table, chain and rule for packets that leave by the interface of this number."""
    output = struct.pack("=I", interface)  # compared with a register, which is in the machine's own order
    return [
        new_table(_TABLE),
        new_chain(_TABLE, _CHAIN, _POSTROUTING),
        new_rule(
            _TABLE,
            _CHAIN,
            expression("meta", number(1, _REGISTER), number(2, _META_OUTPUT_INTERFACE)),
            expression("cmp", number(1, _REGISTER), number(2, _EQUAL), nested(3, attribute(1, output))),
            expression("masq"),
        ),
    ]


def masquerade(interface: int) -> None:
    """Create the rule in the network namespace of the caller."""
    perform(build_masquerade(interface), "masquerade")
