"""Credentials for an API server, and the sources that keep them current.

In: the user entry of a kubeconfig (`kubeconfig.py`). Out: `Credentials`, which the transport gets before every request.
After a 401 it calls `renew`, and sends the request once more if the credentials have changed.
"""

import asyncio
import errno
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Final, Literal, Protocol, TypeAlias

import msgspec

from kuberuntime import timeouts
from kuberuntime.clock import Clock, SystemClock
from kuberuntime.errors import ConfigError
from kuberuntime.objects.meta import JSONObject

REREAD: Final = 60.0
"""Seconds after which files are read again: the kubelet renews a pod's token, and tools renew certificates."""

LEEWAY: Final = timedelta(seconds=10)
"""The time before its expiry at which a credential counts as expired, to allow for the duration of a request."""

EXEC_TIMEOUT: Final = 300.0
"""The maximum seconds for an exec plugin; the user may have to log in."""

EXEC_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

LARGEST_OUTPUT: Final = 1 * 2**20
"""The maximum bytes of an exec plugin's output; the largest certificates have some KiB."""

LARGEST_FILE: Final = 16 * 2**20
"""The maximum bytes of a kubeconfig, or of a file that it names."""

InteractiveMode: TypeAlias = Literal["Never", "IfAvailable", "Always"]


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of a request: a bearer token, a client certificate (PEM), both, or nothing."""

    token: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)


def read_file(path: Path) -> bytes:
    """Return the content of a small file; raise `OSError` if it cannot be read or is too large."""
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "there is a null character in the name", str(path))
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise OSError(errno.EFBIG, f"larger than {LARGEST_FILE >> 20} MiB", str(path))
    return content


def checked_token(token: str, entry: str) -> str:
    """Return a bearer token; raise `ConfigError` if it is invalid in an HTTP header."""
    unfit = next((place for place, character in enumerate(token) if not "!" <= character <= "~"), None)
    if unfit is None:
        return token
    raise ConfigError(
        f"{entry}: Invalid value: character {unfit + 1} of the token is a space, a control character or not ASCII: "
        "copy the token again"
    )


class CredentialSource(Protocol):
    """A source of current credentials."""

    async def get(self) -> Credentials:
        """Return the credentials for the next request; raise `ConfigError` if there are none."""
        ...

    async def renew(self, refused: Credentials) -> bool:
        """Renew credentials that the server refused; return whether `get` now returns different ones."""
        ...


@dataclass(frozen=True, slots=True)
class Material:
    """One secret of a kubeconfig: inline or in a file. `entry` names it in messages."""

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
    """Credentials of a kubeconfig; those in files are read again every minute and after a 401."""

    def __init__(self, *, token: Material, certificate: Material, key: Material) -> None:
        self._token = token
        self._certificate = certificate
        self._key = key
        self._has_files = any(material.file is not None for material in (token, certificate, key))
        self._current = self._read()
        self._read_at: float | None = None

    async def get(self) -> Credentials:
        """Return the credentials; files were read within the last minute."""
        if self._has_files:
            now = asyncio.get_running_loop().time()
            if self._read_at is None or now - self._read_at >= REREAD:
                self._current, self._read_at = self._read(), now
        return self._current

    async def renew(self, refused: Credentials) -> bool:
        """Read the files again."""
        self._read_at = None
        return await self.get() != refused

    def _read(self) -> Credentials:
        token = self._token.read().decode(errors="replace").strip()
        if self._token.file is not None and not token:
            raise ConfigError(f"{self._token.entry}: {self._token.file} is empty: it must hold a bearer token")
        return Credentials(checked_token(token, self._token.entry), self._certificate.read(), self._key.read())


class Concealed(msgspec.Struct, frozen=True):
    """A struct whose values are secrets: its text only shows which fields are set."""

    def __repr__(self) -> str:
        given = [name for name in self.__struct_fields__ if getattr(self, name)]
        return f"{type(self).__name__}({', '.join(given)})"


class EnvironmentVariable(Concealed, frozen=True):
    """One entry of `exec.env`."""

    name: str
    value: str


class ExecConfig(Concealed, frozen=True, rename="camel"):
    """`users[].user.exec` of a kubeconfig."""

    command: str
    api_version: str = ""
    args: tuple[str, ...] = ()
    env: tuple[EnvironmentVariable, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: InteractiveMode = "IfAvailable"


class _ExecStatus(Concealed, frozen=True, rename="camel"):
    """`status` of the ExecCredential that a plugin prints."""

    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: Literal["ExecCredential"]
    status: _ExecStatus


class ExecCredentials:
    """Credentials that a program prints (`aws`, `gke-gcloud-auth-plugin`, ...), kept until they expire."""

    def __init__(
        self, config: ExecConfig, *, entry: str, directory: Path, cluster: JSONObject, clock: Clock | None = None
    ) -> None:
        if config.api_version not in EXEC_VERSIONS:
            raise ConfigError(
                f"{entry}.apiVersion: Unsupported value: {config.api_version!r}: "
                f"update the plugin and its entry to {EXEC_VERSIONS[0]}"
            )
        self._config = config
        self._entry = entry
        self._directory = directory
        self._cluster = cluster
        self._clock = clock or SystemClock()
        self._lock = asyncio.Lock()
        self._current: Credentials | None = None
        self._expires: datetime | None = None

    async def get(self) -> Credentials:
        """Return the credentials that the plugin printed last; run it again if they have expired."""
        async with self._lock:
            if self._current is None or (self._expires is not None and self._clock.now() >= self._expires - LEEWAY):
                self._current = None
                self._current = await self._run()
            return self._current

    async def renew(self, refused: Credentials) -> bool:
        """Run the plugin again, unless another task has done so in the meantime."""
        if self._current == refused:
            self._current = None
        return await self.get() != refused

    async def _run(self) -> Credentials:
        interactive = self._is_interactive()
        program = (
            str(self._directory / self._config.command) if os.sep in self._config.command else self._config.command
        )
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                *self._config.args,
                env=self._environment(os.environ, interactive=interactive),
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            hint = f"; {self._config.install_hint.strip()}" if self._config.install_hint else ""
            raise ConfigError(f"{self._entry}.command: cannot run {program}: {error.strerror}{hint}") from error
        except ValueError as error:  # a null character, or = in the name of a variable
            raise ConfigError(f"{self._entry}: cannot run {program!r}: {error}") from error
        return self._parse(await self._output(process))

    async def _output(self, process: asyncio.subprocess.Process) -> bytes:
        try:
            async with timeouts.within(EXEC_TIMEOUT):
                output = await self._read(process)
                await process.wait()
        except TimeoutError as error:
            raise ConfigError(
                f"{self._entry}: {self._config.command} printed nothing in {EXEC_TIMEOUT:.0f} s"
            ) from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise ConfigError(f"{self._entry}: {self._config.command} failed with exit code {process.returncode}")
        return output

    async def _read(self, process: asyncio.subprocess.Process) -> bytes:
        """Read the whole output of the plugin; terminate the plugin if it prints too much."""
        output = bytearray()
        while process.stdout is not None and (piece := await process.stdout.read(LARGEST_OUTPUT)):
            output += piece
            if len(output) > LARGEST_OUTPUT:
                raise ConfigError(
                    f"{self._entry}: {self._config.command} printed more than {LARGEST_OUTPUT >> 20} MiB: "
                    "it must print one ExecCredential; try the command by itself"
                )
        return bytes(output)

    def _parse(self, output: bytes) -> Credentials:
        try:
            printed = msgspec.json.decode(output, type=_ExecCredential)
        except msgspec.DecodeError as error:
            raise ConfigError(f"{self._entry}: {self._config.command} printed no ExecCredential: {error}") from error
        if printed.api_version != self._config.api_version:
            raise ConfigError(
                f"{self._entry}: {self._config.command} printed {printed.api_version}, "
                f"but the entry asks for {self._config.api_version}"
            )
        status = printed.status
        if not status.token and not (status.client_certificate_data and status.client_key_data):
            raise ConfigError(f"{self._entry}: {self._config.command} printed neither a token nor a client certificate")
        self._expires = status.expiration_timestamp
        certificate, key = status.client_certificate_data or "", status.client_key_data or ""
        token = checked_token((status.token or "").strip(), f"{self._entry}: {self._config.command}")
        return Credentials(token, certificate.encode(), key.encode())

    def _is_interactive(self) -> bool:
        mode = self._config.interactive_mode
        is_terminal = sys.stdin is not None and sys.stdin.isatty()
        if mode == "Always" and not is_terminal:
            raise ConfigError(f"{self._entry}: {self._config.command} needs a terminal to ask on, and there is none")
        return mode != "Never" and is_terminal

    def _environment(self, inherited: Mapping[str, str], *, interactive: bool) -> dict[str, str]:
        spec: JSONObject = {"interactive": interactive}
        if self._config.provide_cluster_info:
            spec["cluster"] = self._cluster
        info = {"apiVersion": self._config.api_version, "kind": "ExecCredential", "spec": spec}
        given = {variable.name: variable.value for variable in self._config.env}
        return {**inherited, **given, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
