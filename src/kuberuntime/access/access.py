"""Access to one API server, as read from a kubeconfig or from the service account of a pod."""

from dataclasses import dataclass, field

from kuberuntime.access.credentials import CredentialSource


@dataclass(frozen=True, slots=True)
class TLS:
    """How to verify the server: by `authority` (PEM; empty: the system's roots), under `server_name` if given."""

    authority: bytes = b""
    server_name: str = ""
    insecure: bool = False
    entry: str = ""


@dataclass(frozen=True, slots=True)
class Access:
    """Address, credentials, TLS and proxy of one server, and the namespace to work in."""

    server: str
    credentials: CredentialSource
    tls: TLS = field(default_factory=TLS)
    proxy: str = field(default="", repr=False)
    namespace: str = "default"
    context: str = ""
