"""Validates the URLs of servers and proxies, hides their passwords, and selects the proxy."""

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from kuberuntime.errors import ConfigError

USER_INFORMATION = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)?.*@", re.DOTALL)


def check_server(url: str, entry: str) -> SplitResult:
    """Return the parts of an API server URL. Raise `ConfigError` if the URL is invalid."""
    advice = "must be a URL such as https://host:6443"
    parts = split(url, entry, advice)
    if parts.scheme not in {"https", "http"} or parts.query or parts.fragment:
        raise ConfigError(f"{entry}: Invalid value: {redact(url)!r}: {advice}")
    if "@" in parts.netloc:
        raise ConfigError(
            f"{entry}: Invalid value: {redact(url)!r}: the URL must not contain a user and password. Use a token, a "
            "client certificate or an exec plugin"
        )
    return parts


def split(url: str, entry: str, advice: str) -> SplitResult:
    """Return the parts of a URL. Raise `ConfigError` if the URL has no host or is not ASCII."""
    try:
        parts = urlsplit(url)
        is_usable = bool(parts.hostname) and parts.port != 0 and url.isascii() and url.isprintable() and " " not in url
    except ValueError:  # an invalid port, or an incomplete IPv6 address
        is_usable, parts = False, SplitResult("", "", "", "", "")
    if not is_usable:
        raise ConfigError(f"{entry}: Invalid value: {redact(url)!r}: {advice}")
    return parts


def redact(url: str) -> str:
    """Return a URL without its user and password. The URL can be invalid.

    >>> redact("http://me:secret@proxy:3128")
    'http://xxxxx@proxy:3128'
    """
    return USER_INFORMATION.sub(lambda match: f"{match[1] or ''}xxxxx@", url)


def is_loopback(host: str) -> bool:
    """Return whether a host name or address refers to this machine."""
    ip_address = address(host)
    return host == "localhost" or (ip_address is not None and ip_address.is_loopback)


def address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address, or None if the host is a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


SCHEMES = ("http", "https")

DEFAULT_PORTS = {"http": 80, "https": 443}


def choose_proxy(server: str, configured: str, environment: Mapping[str, str]) -> str:
    """Return the proxy URL, or an empty string if there is none.

    Proxies from the environment do not apply to this machine.

    >>> choose_proxy("https://10.0.0.1:6443", "", {"HTTPS_PROXY": "http://proxy:3128"})
    'http://proxy:3128'
    >>> choose_proxy("https://127.0.0.1:6443", "", {"HTTPS_PROXY": "http://proxy:3128"})
    ''
    """
    proxy = configured or _from_environment(server, environment)
    if proxy:
        advice = "must be a http:// or https:// URL, such as http://proxy:3128"
        if split(proxy, f"proxy of {server}", advice).scheme not in SCHEMES:
            raise ConfigError(f"proxy of {server}: Invalid value: {redact(proxy)!r}: {advice}")
    return proxy


def _from_environment(server: str, environment: Mapping[str, str]) -> str:
    parts = urlsplit(server)
    host = parts.hostname or ""
    names = (f"{parts.scheme}_proxy", f"{parts.scheme}_proxy".upper())
    proxy = next((environment[name] for name in names if environment.get(name)), "")
    excluded = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    if not proxy or is_loopback(host) or _is_excluded(parts, excluded):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_excluded(server: SplitResult, excluded: str) -> bool:
    """Return whether NO_PROXY contains the host. The rules are the same as in Go.

    An entry is `*`, an address, a network (10.0.0.0/8) or a domain. `example` matches the host and its subdomains.
    `.example` and `*.example` match only the subdomains. Addresses and domains may have a port.
    """
    entries = [entry.strip().lower() for entry in excluded.split(",") if entry.strip()]
    return "*" in entries or any(_names(entry, server) for entry in entries)


ADDRESS_WITH_PORT = re.compile(r"\[(?P<address>[^\]]*)\](?::(?P<port>.*))?")


def _names(entry: str, server: SplitResult) -> bool:
    host, port = (server.hostname or ""), str(server.port or DEFAULT_PORTS[server.scheme])
    ip = address(host)
    if "/" in entry:
        return ip is not None and _contains(entry, ip)
    name, named_port = entry, ""
    if match := ADDRESS_WITH_PORT.fullmatch(entry):
        name, named_port = match["address"], match["port"] or ""
    elif entry.count(":") == 1:
        name, _, named_port = entry.partition(":")
    if not name or named_port not in {"", port}:
        return False
    if ip is not None or address(name) is not None:
        return ip is not None and ip == address(name)
    domain = name[1:] if name.startswith("*.") else name
    return host.endswith(domain) if domain.startswith(".") else host == domain or host.endswith(f".{domain}")


def _contains(network: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False  # a host name
