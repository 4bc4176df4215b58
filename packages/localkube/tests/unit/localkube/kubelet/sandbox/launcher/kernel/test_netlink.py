"""Tests the bytes of requests to the network tables of the kernel."""

import struct
import sys

import pytest

from localkube.kubelet.sandbox.launcher.kernel.netlink import (
    Peer,
    Request,
    build_address,
    build_bridge,
    build_default_route,
    build_delay,
    build_forwarding,
    build_link_into_bridge,
    build_link_up,
    build_neighbour,
    build_no_delay,
    build_port_entry,
    build_route,
    build_veth,
    encode,
    link_address,
    parse_acknowledgement,
)

pytestmark = pytest.mark.skipif(
    sys.byteorder != "little", reason="the bytes below are those of a little-endian machine"
)


def test_link_up_request_has_the_expected_bytes() -> None:
    assert build_link_up(1).body.hex(" ", 4) == "00000000 01000000 01000000 01000000"


def test_delay_request_equals_the_one_of_tc() -> None:
    """The bytes were recorded from `tc qdisc add dev … root netem delay 100ms limit 10000` and its deletion."""
    body = build_delay(7, 0.1).body
    assert body[:20].hex(" ", 4) == "00000000 07000000 00000000 ffffffff 00000000"
    assert attributes(body[20:]) == {1: b"netem\0", 2: bytes.fromhex("84d71700 10270000" + "00000000" * 4)}
    assert build_no_delay(7).body.hex(" ", 4) == "00000000 07000000 00000000 ffffffff 00000000"
    assert (build_delay(7, 0.1).kind, build_no_delay(7).kind) == (36, 37)


def test_bridge_request_has_name_and_type() -> None:
    body = build_bridge("br0", 100).body
    assert body[:16].hex(" ", 4) == "00000000 64000000 01000000 01000000"
    assert attributes(body[16:]) == {3: b"br0\0", 18: body[28:]}
    assert attributes(attributes(body[16:])[18]) == {1: b"bridge\0"}


def test_veth_request_names_both_ends_and_the_namespace() -> None:
    body = build_veth(("pod1", 101), 100, Peer("eth0", 100, 7)).body
    assert struct.unpack_from("=i", body, 4) == (101,)
    outer = attributes(body[16:])
    assert outer[3] == b"pod1\0"
    assert outer[10] == struct.pack("=I", 100)
    info = attributes(outer[18])
    assert info[1] == b"veth\0"
    far = attributes(info[2])[1]
    assert struct.unpack_from("=iII", far, 4) == (100, 0, 0)
    assert attributes(far[16:]) == {3: b"eth0\0", 28: struct.pack("=I", 7)}


def test_bridge_and_veth_peer_receive_ethernet_addresses() -> None:
    address = link_address("10.88.1.9")
    assert address.hex(":") == "02:00:0a:58:01:09"
    assert attributes(build_bridge("br0", 100, address).body[16:])[1] == address
    outer = attributes(build_veth(("pod1", 101), 100, Peer("eth0", 100, 7, address)).body[16:])
    assert attributes(attributes(attributes(outer[18])[2])[1][16:])[1] == address


def test_link_into_bridge_request_names_the_bridge() -> None:
    body = build_link_into_bridge(5, 100).body
    assert attributes(body[16:]) == {10: struct.pack("=I", 100)}


def test_address_request_has_local_and_peer_address() -> None:
    body = build_address(2, "10.88.1.9", 16).body
    assert body[:8].hex(" ", 4) == "02100000 02000000"
    assert attributes(body[8:]) == {1: bytes((10, 88, 1, 9)), 2: bytes((10, 88, 1, 9))}


def test_default_route_request_names_the_gateway() -> None:
    body = build_default_route("10.88.0.1").body
    assert body[:12].hex(" ", 4) == "02000000 fe030001 00000000"
    assert attributes(body[12:]) == {5: bytes((10, 88, 0, 1))}


def test_route_to_a_host_names_its_interface() -> None:
    body = build_route("10.88.0.1", 32, interface=100).body
    assert body[:12].hex(" ", 4) == "02200000 fe03fd01 00000000"
    assert attributes(body[12:]) == {1: bytes((10, 88, 0, 1)), 4: struct.pack("=I", 100)}


def test_route_to_a_network_names_its_gateway() -> None:
    body = build_route("10.88.0.0", 16, gateway="10.88.0.1").body
    assert attributes(body[12:]) == {1: bytes((10, 88, 0, 0)), 5: bytes((10, 88, 0, 1))}


def test_neighbor_entry_is_permanent() -> None:
    body = build_neighbour(100, "10.88.1.9").body
    assert body[:12].hex(" ", 4) == "02000000 64000000 80000000"
    assert attributes(body[12:]) == {1: bytes((10, 88, 1, 9)), 2: link_address("10.88.1.9")}


def test_entry_of_a_port_is_kept_by_its_bridge() -> None:
    body = build_port_entry(101, "10.88.1.9").body
    assert body[:12].hex(" ", 4) == "07000000 65000000 40000400"
    assert attributes(body[12:]) == {2: link_address("10.88.1.9")}


def test_forwarding_request_names_one_interface() -> None:
    body = build_forwarding(100).body
    of_family = attributes(attributes(body[16:])[26])
    assert attributes(attributes(of_family[2])[1]) == {1: struct.pack("=I", 1)}


def test_header_has_the_length_and_requests_an_answer() -> None:
    data = encode(Request(16, 0x600, b"body", "test"), 9)
    assert struct.unpack_from("=IHHII", data) == (20, 16, 0x605, 9, 0)
    assert data[16:] == b"body"


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (-17, 17)])
def test_acknowledgement_has_the_error(code: int, expected: int) -> None:
    assert parse_acknowledgement(acknowledgement(8, 0) + acknowledgement(9, code), 9) == expected


def test_acknowledgement_of_a_different_request_is_ignored() -> None:
    assert parse_acknowledgement(acknowledgement(8, 0), 9) is None
    assert parse_acknowledgement(b"", 9) is None


def acknowledgement(sequence: int, code: int) -> bytes:
    return struct.pack("=IHHIIi", 36, 2, 0, sequence, 0, code) + bytes(16)


def attributes(data: bytes) -> dict[int, bytes]:
    found = {}
    while data:
        length, kind = struct.unpack_from("=HH", data)
        found[kind] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return found
