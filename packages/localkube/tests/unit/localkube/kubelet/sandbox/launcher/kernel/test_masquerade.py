"""Tests the nf_tables batch that rewrites the source address of pod packets."""

import struct
import sys

import pytest

from localkube.kubelet.sandbox.launcher.kernel.nftables import build_batch
from localkube.kubelet.sandbox.launcher.kernel.packetrules import build_masquerade

pytestmark = pytest.mark.skipif(
    sys.byteorder != "little", reason="the bytes below are those of a little-endian machine"
)

TABLE, CHAIN, RULE = 0x0A00, 0x0A03, 0x0A06


def messages() -> list[tuple[int, int, bytes]]:
    """Return the kind, flags and body of each message in the batch."""
    data, found = build_batch(build_masquerade(7)), []
    while data:
        length, kind, flags = struct.unpack_from("=IHH", data)
        found.append((kind, flags, data[16:length]))
        data = data[length:]
    return found


def test_batch_contains_three_changes() -> None:
    assert [kind for kind, _, _ in messages()] == [0x10, TABLE, CHAIN, RULE, 0x11]
    assert messages()[0][2] == messages()[-1][2] == bytes((0, 0, 0, 10))
    assert [flags & 0x4 for _, flags, _ in messages()] == [0, 4, 4, 4, 0]


def test_chain_hooks_in_after_routing() -> None:
    body = messages()[2][2]
    assert body[0] == 2
    assert b"nat\0" in body
    assert struct.pack("!I", 4) in body
    assert struct.pack("!I", 100) in body


def test_rule_compares_the_interface_and_masquerades() -> None:
    body = messages()[3][2]
    assert [body.index(word) for word in (b"meta\0", b"cmp\0", b"masq\0")] == sorted(
        body.index(word) for word in (b"meta\0", b"cmp\0", b"masq\0")
    )
    assert struct.pack("=HHI", 8, 1, 7) in body
