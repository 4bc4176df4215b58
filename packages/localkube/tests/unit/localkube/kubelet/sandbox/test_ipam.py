"""Tests the assignment of pod addresses."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.kubelet.sandbox.ipam import (
    GATEWAY,
    WAY_OUT_GATEWAY,
    WAY_OUT_NAMESERVER,
    AddressesExhaustedError,
    AddressPool,
    LoopbackBlock,
)

SMALL = ipaddress.IPv4Network("10.0.0.0/23")


def test_released_address_is_reused_last() -> None:
    pool = AddressPool(SMALL)
    first = pool.allocate()
    pool.release(first)
    taken = [pool.allocate() for _ in range(255)]
    assert taken[-1] == first
    assert taken.index(first) == 254


def test_address_exhaustion_error_gives_advice() -> None:
    pool = AddressPool(SMALL)
    for _ in range(255):
        pool.allocate()
    with pytest.raises(
        AddressesExhaustedError, match=r"all 255 addresses of 10\.0\.0\.0/23 are in use\. Delete some pods"
    ):
        pool.allocate()


@given(st.lists(st.booleans(), max_size=300))
def test_addresses_are_unique_and_not_reserved(takes: list[bool]) -> None:
    pool = AddressPool(SMALL)
    held: list[str] = []
    for take in takes:
        if take:
            address = pool.allocate()
            assert address not in {*held, GATEWAY, WAY_OUT_GATEWAY, WAY_OUT_NAMESERVER}
            assert ipaddress.ip_address(address) in SMALL
            held.append(address)
        elif held:
            pool.release(held.pop(0))


def test_clusters_have_separate_blocks_that_can_be_reused() -> None:
    one = LoopbackBlock()
    two = LoopbackBlock()
    assert one.network != two.network
    one.release()
    three = LoopbackBlock()
    assert three.network == one.network
    two.release()
    three.release()
