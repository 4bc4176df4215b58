"""Addresses of pods."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.kubelet.sandbox.addresses import (
    GATEWAY,
    WAY_OUT_GATEWAY,
    WAY_OUT_NAMESERVER,
    AddressesExhaustedError,
    AddressPool,
    LoopbackBlock,
)

SMALL = ipaddress.IPv4Network("10.0.0.0/23")


def test_released_address_comes_back_last() -> None:
    pool = AddressPool(SMALL)
    first = pool.take()
    pool.release(first)
    taken = [pool.take() for _ in range(255)]
    assert taken[-1] == first
    assert taken.index(first) == 254


def test_exhaustion_says_what_to_do() -> None:
    pool = AddressPool(SMALL)
    for _ in range(255):
        pool.take()
    with pytest.raises(
        AddressesExhaustedError, match=r"all 255 addresses of 10\.0\.0\.0/23 are in use; delete some pods"
    ):
        pool.take()


@given(st.lists(st.booleans(), max_size=300))
def test_no_address_is_held_twice_and_none_is_reserved(takes: list[bool]) -> None:
    pool = AddressPool(SMALL)
    held: list[str] = []
    for take in takes:
        if take:
            address = pool.take()
            assert address not in {*held, GATEWAY, WAY_OUT_GATEWAY, WAY_OUT_NAMESERVER}
            assert ipaddress.ip_address(address) in SMALL
            held.append(address)
        elif held:
            pool.release(held.pop(0))


def test_two_clusters_get_two_blocks_and_a_released_one_is_free_again() -> None:
    one = LoopbackBlock()
    two = LoopbackBlock()
    assert one.network != two.network
    one.release()
    three = LoopbackBlock()
    assert three.network == one.network
    two.release()
    three.release()
