"""Implements a minimal rtnetlink client with messages for links, addresses and routes, and their socket.

The `build_*` functions are pure: they return the bytes of one request. Numbers are those of linux/rtnetlink.h,
linux/if_link.h and linux/if_addr.h; integers are in the machine's own order.
"""

import os
import socket
import struct
from typing import NamedTuple

NLM_F_REQUEST = 0x1
NLM_F_ACK = 0x4
_NLM_F_REPLACE = 0x100
_NLM_F_EXCL = 0x200
NLM_F_CREATE = 0x400
NLMSG_ERROR = 2

_RTM_NEWLINK = 16
_RTM_NEWADDR = 20
_RTM_NEWROUTE = 24
_RTM_NEWNEIGH = 28
_RTM_NEWQDISC = 36
_RTM_DELQDISC = 37

_IFLA_ADDRESS = 1
_IFLA_IFNAME = 3
_IFLA_MASTER = 10
_IFLA_LINKINFO = 18
_IFLA_AF_SPEC = 26
_IFLA_NET_NS_FD = 28
_IFLA_INET_CONF = 1
_IPV4_DEVCONF_FORWARDING = 1
_IFLA_INFO_KIND = 1
_IFLA_INFO_DATA = 2
_VETH_INFO_PEER = 1
_IFA_ADDRESS = 1
_IFA_LOCAL = 2
_RTA_DST = 1
_RTA_OIF = 4
_RTA_GATEWAY = 5
_AF_BRIDGE = 7
_NDA_DST = 1
_NDA_LLADDR = 2
_NUD_NOARP = 0x40
_NUD_PERMANENT = 0x80
_NTF_MASTER = 0x04
_TCA_KIND = 1
_TCA_OPTIONS = 2
_TC_ROOT = 0xFFFFFFFF
_NANOSECONDS_PER_TICK = 64
_HELD_PACKETS = 10_000

_IFF_UP = 1
_RT_TABLE_MAIN = 254
_RTPROT_BOOT = 3
_RT_SCOPE_UNIVERSE = 0
_RT_SCOPE_LINK = 253
_RTN_UNICAST = 1

HEADER = struct.Struct("=IHHII")
_IFINFOMSG = struct.Struct("=BxHiII")
_IFADDRMSG = struct.Struct("=BBBBi")
_NDMSG = struct.Struct("=BxxxiHBB")
_RTMSG = struct.Struct("=BBBBBBBBI")
_TCMSG = struct.Struct("=BxxxiIII")
_NETEM = struct.Struct("=IIIIII")
_ATTRIBUTE = struct.Struct("=HH")


class Request(NamedTuple):
    """One request, with its type, flags and body, and its action for error messages."""

    kind: int
    flags: int
    body: bytes
    action: str


def attribute(kind: int, payload: bytes) -> bytes:
    """Build an attribute with bytes."""
    length = _ATTRIBUTE.size + len(payload)
    return _ATTRIBUTE.pack(length, kind) + payload + b"\0" * (-length % 4)


def string_attribute(kind: int, value: str) -> bytes:
    """Build an attribute with a string."""
    return attribute(kind, value.encode() + b"\0")


def _number(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("=I", value))


def _link(index: int, *, up: bool) -> bytes:
    flags = _IFF_UP if up else 0
    return _IFINFOMSG.pack(socket.AF_UNSPEC, 0, index, flags, flags)


def link_address(address: str) -> bytes:
    """Return the Ethernet address for an IPv4 address, which is locally administered and deterministic."""
    return b"\x02\0" + socket.inet_aton(address)


def build_bridge(name: str, index: int, address: bytes = b"") -> Request:
    """Create a bridge with this interface number. Without an Ethernet address, it uses a port's address."""
    info = attribute(_IFLA_LINKINFO, string_attribute(_IFLA_INFO_KIND, "bridge"))
    body = _link(index, up=True) + string_attribute(_IFLA_IFNAME, name) + info
    if address:
        body += attribute(_IFLA_ADDRESS, address)
    return Request(_RTM_NEWLINK, NLM_F_CREATE | _NLM_F_EXCL, body, f"create bridge {name}")


class Peer(NamedTuple):
    """The remote end of a veth pair: its name, number and network namespace, and optionally its Ethernet address."""

    name: str
    number: int
    namespace_fd: int
    address: bytes = b""


def build_veth(near: tuple[str, int], bridge_index: int, peer: Peer) -> Request:
    """Create a veth pair with its local end (name, number) up on the bridge, and its remote end in another namespace.

    The kernel accepts the far end's number only together with the near end's.
    """
    name, index = near
    far = (
        _link(peer.number, up=False)
        + string_attribute(_IFLA_IFNAME, peer.name)
        + _number(_IFLA_NET_NS_FD, peer.namespace_fd)
    )
    if peer.address:
        far += attribute(_IFLA_ADDRESS, peer.address)
    info = string_attribute(_IFLA_INFO_KIND, "veth") + attribute(_IFLA_INFO_DATA, attribute(_VETH_INFO_PEER, far))
    body = (
        _link(index, up=True)
        + string_attribute(_IFLA_IFNAME, name)
        + _number(_IFLA_MASTER, bridge_index)
        + attribute(_IFLA_LINKINFO, info)
    )
    return Request(_RTM_NEWLINK, NLM_F_CREATE | _NLM_F_EXCL, body, f"create veth {name}")


def build_link_up(index: int) -> Request:
    """Bring an interface up."""
    return Request(_RTM_NEWLINK, 0, _link(index, up=True), f"enable interface {index}")


def build_link_into_bridge(index: int, bridge_index: int) -> Request:
    """Attach an interface to the bridge as a port, and bring it up."""
    body = _link(index, up=True) + _number(_IFLA_MASTER, bridge_index)
    return Request(_RTM_NEWLINK, 0, body, f"attach interface {index} to the bridge")


def build_address(index: int, address: str, prefix: int) -> Request:
    """Assign an IPv4 address to an interface."""
    packed = socket.inet_aton(address)
    body = _IFADDRMSG.pack(socket.AF_INET, prefix, 0, _RT_SCOPE_UNIVERSE, index)
    body += attribute(_IFA_LOCAL, packed) + attribute(_IFA_ADDRESS, packed)
    return Request(_RTM_NEWADDR, NLM_F_CREATE | _NLM_F_EXCL, body, f"assign address {address} to interface {index}")


def build_route(destination: str, prefix: int, *, gateway: str = "", interface: int = 0) -> Request:
    """Route packets for a network through a gateway, or to hosts that an interface reaches directly."""
    scope = _RT_SCOPE_UNIVERSE if gateway else _RT_SCOPE_LINK
    body = _RTMSG.pack(socket.AF_INET, prefix, 0, 0, _RT_TABLE_MAIN, _RTPROT_BOOT, scope, _RTN_UNICAST, 0)
    body += attribute(_RTA_DST, socket.inet_aton(destination)) if prefix else b""
    body += attribute(_RTA_GATEWAY, socket.inet_aton(gateway)) if gateway else b""
    body += _number(_RTA_OIF, interface) if interface else b""
    return Request(
        _RTM_NEWROUTE,
        NLM_F_CREATE | _NLM_F_EXCL,
        body,
        f"add a route to {destination}/{prefix} through {gateway or interface}",
    )


def build_default_route(gateway: str) -> Request:
    """Add the default route through the gateway."""
    return build_route("0.0.0.0", 0, gateway=gateway)  # noqa: S104 - not an address to listen on


def build_neighbour(index: int, address: str) -> Request:
    """Add a permanent entry for the Ethernet address of a neighbor of an interface (`link_address`).

    Such an entry does not count against the kernel's limit for the whole machine (1,024 by default).
    """
    body = _NDMSG.pack(socket.AF_INET, index, _NUD_PERMANENT, 0, 0)
    body += attribute(_NDA_DST, socket.inet_aton(address)) + attribute(_NDA_LLADDR, link_address(address))
    return Request(_RTM_NEWNEIGH, NLM_F_CREATE | _NLM_F_REPLACE, body, f"set the neighbor entry of {address}")


def build_port_entry(port_index: int, address: str) -> Request:
    """Add a permanent entry for the bridge port of a host's Ethernet address (`link_address`).

    A bridge sends frames for unknown addresses to all ports. With a thousand ports, these are more frames than the
    kernel queues.
    """
    body = _NDMSG.pack(_AF_BRIDGE, port_index, _NUD_NOARP, _NTF_MASTER, 0)
    body += attribute(_NDA_LLADDR, link_address(address))
    return Request(_RTM_NEWNEIGH, NLM_F_CREATE | _NLM_F_REPLACE, body, f"set the bridge port of {address}")


def build_forwarding(index: int) -> Request:
    """Forward packets that arrive at an interface."""
    forwarding = _number(_IPV4_DEVCONF_FORWARDING, 1)
    body = _link(index, up=True) + attribute(
        _IFLA_AF_SPEC, attribute(socket.AF_INET, attribute(_IFLA_INET_CONF, forwarding))
    )
    return Request(_RTM_NEWLINK, 0, body, f"forward packets of interface {index}")


def build_delay(index: int, seconds: float) -> Request:
    """Delay every packet that is sent through an interface (netem). This replaces an earlier delay."""
    ticks = min(round(seconds * 1e9 / _NANOSECONDS_PER_TICK), 0xFFFFFFFF)
    body = _TCMSG.pack(socket.AF_UNSPEC, index, 0, _TC_ROOT, 0) + string_attribute(_TCA_KIND, "netem")
    body += attribute(_TCA_OPTIONS, _NETEM.pack(ticks, _HELD_PACKETS, 0, 0, 0, 0))
    return Request(_RTM_NEWQDISC, NLM_F_CREATE | _NLM_F_REPLACE, body, "delay packets (netem, sch_netem)")


def build_no_delay(index: int) -> Request:
    """Stop the delay of an interface."""
    body = _TCMSG.pack(socket.AF_UNSPEC, index, 0, _TC_ROOT, 0)
    return Request(_RTM_DELQDISC, 0, body, "stop delaying packets")


def encode(request: Request, sequence: int) -> bytes:
    """Return the request with its header."""
    length = HEADER.size + len(request.body)
    flags = request.flags | NLM_F_REQUEST | NLM_F_ACK
    return HEADER.pack(length, request.kind, flags, sequence, 0) + request.body


def parse_acknowledgement(data: bytes, sequence: int) -> int | None:
    """Return the error number (0 for success) of the response to request `sequence`, or None if `data` lacks it."""
    while len(data) >= HEADER.size:
        length, kind, _, answered, _ = HEADER.unpack_from(data)
        if kind == NLMSG_ERROR and answered == sequence:
            (negative,) = struct.unpack_from("=i", data, HEADER.size)
            return -int(negative)
        data = data[(max(length, HEADER.size) + 3) & ~3 :]
    return None


class Netlink:
    """A socket to the kernel tables of the network namespace in which it was opened."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._sequence = 0

    def perform(self, *requests: Request) -> None:
        """Perform requests in order. Stop at the first request that the kernel rejects."""
        for request in requests:
            self._sequence += 1
            self._socket.send(encode(request, self._sequence))
            error = None
            while error is None:
                error = parse_acknowledgement(self._socket.recv(1 << 16), self._sequence)
            if error:
                raise OSError(error, f"{request.action}: {os.strerror(error).lower()}")

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
