"""Provides credentials for an API server, and renews them.

Input: the user entry of a kubeconfig (`kubeconfig.py`). Output: `Credentials`, which the transport requests before
every API request. After a 401 response, it calls `renew`, and repeats the request once if the credentials have
changed. Credentials of exec plugins are in `execcredentials.py`. This module does not import asyncio, because shell
completion reads stored credentials without it.
"""

import errno
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

import msgspec

from kuberuntime.errors import ConfigError

REREAD: Final = 60.0
"""The interval in seconds for rereading files. The kubelet renews tokens, and tools renew certificates."""

LARGEST_FILE: Final = 16 * 2**20
"""The maximum size of a kubeconfig, or of a file that it references, in bytes."""

InteractiveMode: TypeAlias = Literal["Never", "IfAvailable", "Always"]


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of a request: a bearer token, a client certificate (PEM), both, or neither."""

    token: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)


def read_file(path: Path) -> bytes:
    """Return the content of a small file. Raise `OSError` if the file is unreadable or too large."""
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "the file name contains a null character", str(path))
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise OSError(errno.EFBIG, f"larger than {LARGEST_FILE >> 20} MiB", str(path))
    return content


def checked_token(token: str, entry: str) -> str:
    """Return a valid bearer token. Raise `ConfigError` if an HTTP header cannot contain it."""
    unfit = next((place for place, character in enumerate(token) if not "!" <= character <= "~"), None)
    if unfit is None:
        return token
    raise ConfigError(
        f"{entry}: Invalid value: character {unfit + 1} of the token is a space, a control character or not ASCII. "
        "Copy the token again"
    )


class CredentialSource(Protocol):
    """A source of current credentials."""

    async def get(self) -> Credentials:
        """Return the credentials for the next request. Raise `ConfigError` if no credentials are available."""

    async def renew(self, rejected: Credentials) -> bool:
        """Renew credentials that the server rejected. Return whether `get` now returns different credentials."""


@dataclass(frozen=True, slots=True)
class SecretEntry:
    """A secret in a kubeconfig, either inline or in a file. Error messages refer to it as `entry`."""

    entry: str
    value: bytes = field(default=b"", repr=False)
    file: Path | None = None

    def read(self) -> bytes:
        """Return the current value of the secret."""
        if self.file is None:
            return self.value
        try:
            return read_file(self.file)
        except OSError as error:
            raise ConfigError(f"{self.entry}: cannot read {self.file}: {error.strerror}") from error


class StoredCredentials:
    """Provides credentials from a kubeconfig. Credential files are reread every minute and after a 401 response."""

    def __init__(self, *, token: SecretEntry, certificate: SecretEntry, key: SecretEntry) -> None:
        self._token = token
        self._certificate = certificate
        self._key = key
        self._has_files = any(material.file is not None for material in (token, certificate, key))
        self._current = self._read()
        self._read_at: float | None = None

    @property
    def current(self) -> Credentials:
        """Return the most recently read credentials."""
        return self._current

    async def get(self) -> Credentials:
        """Return the credentials. Credential files are reread if the last read was more than a minute ago."""
        if self._has_files:
            import asyncio

            now = asyncio.get_running_loop().time()
            if self._read_at is None or now - self._read_at >= REREAD:
                self._current, self._read_at = self._read(), now
        return self._current

    async def renew(self, rejected: Credentials) -> bool:
        """Reread the files."""
        self._read_at = None
        return await self.get() != rejected

    def _read(self) -> Credentials:
        token = self._token.read().decode(errors="replace").strip()
        if self._token.file is not None and not token:
            raise ConfigError(f"{self._token.entry}: {self._token.file} is empty, but must contain a bearer token")
        return Credentials(checked_token(token, self._token.entry), self._certificate.read(), self._key.read())


class RedactedStruct(msgspec.Struct, frozen=True):
    """A struct that contains secrets. Its string representation shows only the names of the fields that are set."""

    def __repr__(self) -> str:
        fields = [name for name in self.__struct_fields__ if getattr(self, name)]
        return f"{type(self).__name__}({', '.join(fields)})"


class EnvironmentVariable(RedactedStruct, frozen=True):
    """An entry of the `exec.env` field."""

    name: str
    value: str


class ExecConfig(RedactedStruct, frozen=True, rename="camel"):
    """The `users[].user.exec` field of a kubeconfig."""

    command: str
    api_version: str = ""
    args: tuple[str, ...] = ()
    env: tuple[EnvironmentVariable, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: InteractiveMode = "IfAvailable"
