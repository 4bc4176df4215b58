"""Chooses the proxy for a server: that of the kubeconfig, or that of the environment, as Go programs do."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from kuberuntime.access import urls
from kuberuntime.errors import ConfigError

SCHEMES = ("http", "https")


def choose(server: str, configured: str, environment: Mapping[str, str]) -> str:
    """Return the URL of the proxy, empty for none; that of the environment is never used for this machine itself.

    >>> choose("https://10.0.0.1:6443", "", {"HTTPS_PROXY": "http://proxy:3128"})
    'http://proxy:3128'
    >>> choose("https://127.0.0.1:6443", "", {"HTTPS_PROXY": "http://proxy:3128"})
    ''
    """
    proxy = configured or _from_environment(server, environment)
    if proxy:
        advice = "only http:// and https:// proxies are supported, as in http://proxy:3128"
        if urls.split(proxy, f"proxy of {server}", advice).scheme not in SCHEMES:
            raise ConfigError(f"proxy of {server}: Invalid value: {urls.redacted(proxy)!r}: {advice}")
    return proxy


def _from_environment(server: str, environment: Mapping[str, str]) -> str:
    parts = urlsplit(server)
    host = parts.hostname or ""
    names = (f"{parts.scheme}_proxy", f"{parts.scheme}_proxy".upper())
    proxy = next((environment[name] for name in names if environment.get(name)), "")
    excluded = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    if not proxy or urls.is_loopback(host) or _is_excluded(host, excluded):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_excluded(host: str, excluded: str) -> bool:
    """Return whether NO_PROXY names the host: by name, domain, address or network (10.0.0.0/8)."""
    parts = [part.strip().lower().removeprefix("*").removeprefix(".") for part in excluded.split(",") if part.strip()]
    address = urls.address(host)
    return any(
        part in {"", host} or host.endswith(f".{part}") or (address is not None and _contains(part, address))
        for part in parts
    )


def _contains(network: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False  # a host name
