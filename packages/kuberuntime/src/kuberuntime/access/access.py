"""Access to one API server, as read from a kubeconfig or from the service account of a pod."""

from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.access.credentials import CredentialSource, read_file


class TLS(Struct, frozen=True):
    """How to verify the server: with `authority` (PEM; empty: the system's roots), under `server_name` if given.

    `file` is the file of the authority: a cluster may replace it while this process runs.
    """

    authority: bytes = b""
    server_name: str = ""
    insecure: bool = False
    entry: str = ""
    file: Path | None = None

    def reread(self) -> "TLS":
        """Return the value with the file's current authority; the same value if it is unchanged."""
        try:
            content = read_file(self.file) if self.file is not None else b""
        except OSError:
            return self
        return replace(self, authority=content) if content and content != self.authority else self


@dataclass(frozen=True, slots=True)
class Access:
    """Address, credentials, TLS and proxy of one server, and the namespace to work in."""

    server: str
    credentials: CredentialSource
    tls: TLS = field(default_factory=TLS)
    proxy: str = field(default="", repr=False)
    namespace: str = "default"
    context: str = ""
    cluster: str = ""
    user: str = ""
    """The entries of the kubeconfig, by name."""
