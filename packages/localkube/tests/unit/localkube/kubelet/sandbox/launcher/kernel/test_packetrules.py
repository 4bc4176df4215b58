"""Tests the nf_tables batches that drop packets between pods."""

import struct

from localkube.kubelet.sandbox.launcher.kernel.nftables import build_batch
from localkube.kubelet.sandbox.launcher.kernel.packetrules import PacketRule, build_rules

TABLE, NO_TABLE, CHAIN, RULE = 0x0A00, 0x0A02, 0x0A03, 0x0A06


def kinds(*rules: PacketRule) -> list[int]:
    """Return the message kinds in a batch, without the begin and end messages."""
    data, found = build_batch(build_rules(rules)), []
    while data:
        length, kind = struct.unpack_from("=IH", data)
        found.append(kind)
        data = data[length:]
    return found[1:-1]


def expressions(rule: PacketRule) -> list[str]:
    """Return the expression names of a rule, in order."""
    body = build_rules([rule])[-1].attributes
    names = (b"payload\0", b"cmp\0", b"numgen\0", b"byteorder\0", b"limit\0", b"immediate\0")
    places = sorted((place, name) for name in names for place in range(len(body)) if body.startswith(name, place))
    return [name.rstrip(b"\0").decode() for _, name in places]


def test_table_is_replaced_completely() -> None:
    assert kinds() == [TABLE, NO_TABLE]
    assert kinds(PacketRule("10.88.1.0", "")) == [TABLE, NO_TABLE, TABLE, CHAIN, RULE]


def test_rule_compares_its_addresses_and_drops() -> None:
    both = PacketRule("10.88.1.0", "10.88.1.1")
    assert expressions(both) == ["payload", "cmp", "payload", "cmp", "immediate"]
    assert bytes((10, 88, 1, 0)) in build_rules([both])[-1].attributes
    assert expressions(PacketRule("", "10.88.1.1")) == ["payload", "cmp", "immediate"]


def test_share_and_rate_limit_the_dropped_packets() -> None:
    share = PacketRule("", "10.88.1.1", share=0.25)
    assert expressions(share) == ["payload", "cmp", "numgen", "byteorder", "cmp", "immediate"]
    assert struct.pack("!I", 250_000) in build_rules([share])[-1].attributes
    rate = PacketRule("", "10.88.1.1", rate=50_000)
    assert expressions(rate) == ["payload", "cmp", "limit", "immediate"]
    assert struct.pack("!Q", 50_000) in build_rules([rate])[-1].attributes
