"""Implements the pod network: a bridge in the launcher's namespace, and a veth pair and namespace per pod.

A Linux bridge has 1,023 ports. When its ports for pods are used up, further bridges are connected to it. Each has a
veth pair on one of its reserved ports, so all pods are on one network.

Pods reach each other through the launcher's namespace, which forwards: each pod knows one neighbour, the bridge, and
the bridge's end knows every pod. Both are permanent entries. Entries that ARP finds are in one table of the whole
machine with 1,024 places, and 500 probed pods would fill it, also for other programs.

Nothing here needs root: the user namespace of the launcher owns these network namespaces. They have no connection to
the outside unless one is attached to the bridge (`attach`). IPv6 is on the loopback interface only.
"""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from . import syscalls
from .netlink import (
    Netlink,
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
    link_address,
)
from .packetrules import masquerade

BRIDGE = "kube0"
PREFIX = 16
_ALONE = 32
PODS_PER_BRIDGE = 1000
"""The number of pods per bridge, which has 1,023 ports. The first bridge uses some for additional bridges."""

_INDEX = 100  # the number of the bridge, and of eth0 in each pod, above the kernel's own numbers
_LOOPBACK = 1
_CURRENT = "/proc/thread-self/ns/net"


@contextmanager
def _current() -> Iterator[int]:
    here = os.open(_CURRENT, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield here
    finally:
        os.close(here)


@contextmanager
def _restore_namespace() -> Iterator[None]:
    with _current() as home:
        try:
            yield
        finally:
            syscalls.setns(home, syscalls.CLONE_NEWNET)


@contextmanager
def inside(fd: int) -> Iterator[None]:
    """Run the body in a different network namespace."""
    with _restore_namespace():
        syscalls.setns(fd, syscalls.CLONE_NEWNET)
        yield


class _Bridge:
    """A bridge by its number, and its number of pods. Additional bridges have an uplink to the first bridge."""

    def __init__(self, index: int, uplink: int = 0) -> None:
        self.index = index
        self.uplink = uplink
        self.pods = 0


class _Port(NamedTuple):
    """The connection of a pod: its bridge, and the number of the local end of its veth pair."""

    bridge: _Bridge
    number: int


class BridgeNetwork:
    """The bridges, in the network namespace of the launcher."""

    def __init__(self, address: str) -> None:
        self._netlink = Netlink()
        self._address = self._gateway = address
        self._next_number = 0
        self._bridges = [_Bridge(_INDEX)]
        self._ports: dict[int, _Port] = {}
        _set_sysctls()
        self._netlink.perform(
            build_link_up(_LOOPBACK),
            build_bridge(BRIDGE, _INDEX, link_address(address)),
            build_address(_INDEX, address, PREFIX),
            build_forwarding(_INDEX),
        )

    def attach(self, interface: str, gateway: str | None) -> None:
        """Connect pods to other networks through an interface of this network namespace.

        With a gateway, the interface becomes a port of the bridge and gets pods' frames unchanged. Without, it has its
        own address, and pods' packets are forwarded to it with that address.
        """
        index = socket.if_nametoindex(interface)
        if gateway is None:
            masquerade(index)
            _set_sysctl("net/ipv4/ip_forward", "1")
            return
        self._netlink.perform(build_link_into_bridge(index, _INDEX), build_default_route(gateway))
        self._gateway = gateway

    def create(self, address: str) -> int:
        """Create the network namespace of a pod with lo and eth0 on a bridge. Return its descriptor."""
        bridge = self._bridge_with_free_port()
        network, inner = _new_namespace()
        near = self._next("pod")
        try:
            self._netlink.perform(
                build_veth(near, bridge.index, Peer("eth0", _INDEX, network, link_address(address))),
                build_port_entry(near[1], address),
                *([build_port_entry(bridge.uplink, address)] if bridge.uplink else []),
                build_neighbour(_INDEX, address),
            )
            inner.perform(
                build_link_up(_LOOPBACK),
                build_address(_INDEX, address, _ALONE),
                build_link_up(_INDEX),
                build_neighbour(_INDEX, self._address),
                build_route(self._address, _ALONE, interface=_INDEX),
                *self._routes(),
            )
        except OSError as error:
            os.close(network)
            if error.errno == errno.EXFULL:
                raise OSError(error.errno, "the bridge is full until the kernel has removed terminated pods") from error
            raise
        finally:
            inner.close()
        bridge.pods += 1
        self._ports[network] = _Port(bridge, near[1])
        return network

    def remove(self, network: int) -> None:
        """Release the namespace of a pod whose processes have exited. The kernel removes it, with the veth pair.

        The kernel does so a little later. Removing the pair here would block the launcher for some 15 ms.
        """
        self._ports.pop(network).bridge.pods -= 1
        os.close(network)

    def delay(self, network: int, seconds: float) -> None:
        """Delay every packet to a pod by this time, or stop the delay if it is 0."""
        index = self._ports[network].number
        try:
            self._netlink.perform(build_delay(index, seconds) if seconds else build_no_delay(index))
        except OSError as error:
            if error.errno == errno.ENOENT:
                raise OSError(
                    errno.EOPNOTSUPP, "delay packets: the kernel does not have netem (module sch_netem)"
                ) from error
            raise

    def _routes(self) -> list[Request]:
        """Return the routes of a pod, to other pods through the bridge, and to other hosts through the gateway."""
        if self._gateway == self._address:
            return [build_default_route(self._address)]
        return [
            build_route(_network_of(self._address), PREFIX, gateway=self._address),
            build_route(self._gateway, _ALONE, interface=_INDEX),
            build_default_route(self._gateway),
        ]

    def _bridge_with_free_port(self) -> _Bridge:
        for bridge in self._bridges:
            if bridge.pods < PODS_PER_BRIDGE:
                return bridge
        return self._add_bridge()

    def _add_bridge(self) -> _Bridge:
        """Connect an additional bridge to the first bridge."""
        name, index = self._next("kube")
        inner, inner_index = self._next("down")
        up = self._next("up")
        with _current() as here:
            self._netlink.perform(
                build_bridge(name, index),
                build_veth(up, _INDEX, Peer(inner, inner_index, here)),
                build_link_into_bridge(inner_index, index),
                build_port_entry(inner_index, self._address),
            )
        self._bridges.append(_Bridge(index, up[1]))
        return self._bridges[-1]

    def _next(self, kind: str) -> tuple[str, int]:
        """Return an unused interface name and number."""
        self._next_number += 1
        return f"{kind}{self._next_number}", _INDEX + self._next_number


def _new_namespace() -> tuple[int, Netlink]:
    with _restore_namespace():
        syscalls.unshare(syscalls.CLONE_NEWNET)
        _set_sysctls()
        return os.open(_CURRENT, os.O_RDONLY | os.O_CLOEXEC), Netlink()


def _network_of(address: str) -> str:
    """Return the network of an address, whose addresses share the first `PREFIX` bits."""
    first, second, *_ = address.split(".")
    return f"{first}.{second}.0.0"


def _set_sysctls() -> None:
    """Set the sysctls of container runtimes (low ports and ping for all users), and disable IPv6 traffic of pods.

    Redirects are disabled: they would only make pods request the addresses of each other.
    """
    group = os.getegid()
    _set_sysctl("net/ipv4/ip_unprivileged_port_start", "0")
    _set_sysctl("net/ipv4/ping_group_range", f"{group} {group}")
    _set_sysctl("net/ipv6/conf/default/disable_ipv6", "1")
    _set_sysctl("net/ipv4/conf/all/send_redirects", "0")
    _set_sysctl("net/ipv4/conf/default/send_redirects", "0")


def _set_sysctl(name: str, value: str) -> None:
    with suppress(OSError), open(f"/proc/sys/{name}", "w") as file:  # missing in some kernels, but not required
        file.write(value)
