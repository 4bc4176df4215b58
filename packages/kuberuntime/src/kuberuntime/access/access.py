"""Represents the settings for connecting to an API server, from a kubeconfig or a pod's service account."""

from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.access.credentials import CredentialSource, read_file


class TLS(Struct, frozen=True):
    """The settings for TLS verification.

    `authority` is the CA in PEM format (empty for the system CAs). `server_name` is the expected host name.

    `file` is the CA file, because a cluster may replace it while this process runs.
    """

    authority: bytes = b""
    server_name: str = ""
    insecure: bool = False
    entry: str = ""
    file: Path | None = None

    def reread(self) -> "TLS":
        """Return these settings with the CA reread from its file, or the same object if the CA is unchanged."""
        try:
            content = read_file(self.file) if self.file is not None else b""
        except OSError:
            return self
        return replace(self, authority=content) if content and content != self.authority else self


@dataclass(frozen=True, slots=True)
class Access:
    """The address, credentials, TLS settings and proxy of a server, and the default namespace."""

    server: str
    credentials: CredentialSource
    tls: TLS = field(default_factory=TLS)
    proxy: str = field(default="", repr=False)
    namespace: str = "default"
    context: str = ""
    cluster: str = ""
    user: str = ""
    """The names of the kubeconfig entries."""
