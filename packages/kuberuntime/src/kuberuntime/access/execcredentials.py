"""Reads credentials from the output of exec plugins (`users[].user.exec` in a kubeconfig)."""

import asyncio
import os
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from kuberuntime import timeouts
from kuberuntime.access.credentials import Credentials, ExecConfig, RedactedStruct, checked_token
from kuberuntime.clock import Clock, SystemClock
from kuberuntime.errors import ConfigError
from kuberuntime.objects.meta import JSONObject

LEEWAY: Final = timedelta(seconds=10)
"""The time before the expiration at which a credential is treated as expired.

It allows for the duration of a request.
"""

EXEC_TIMEOUT: Final = 300.0
"""The timeout of an exec plugin in seconds. It includes the time that a user needs to log in."""

EXEC_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

LARGEST_OUTPUT: Final = 1 * 2**20
"""The maximum output size of an exec plugin in bytes. The largest certificates have a few KiB."""


class _ExecStatus(RedactedStruct, frozen=True, rename="camel"):
    """The `status` of an ExecCredential that a plugin prints."""

    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: Literal["ExecCredential"]
    status: _ExecStatus


class ExecCredentials:
    """Provides credentials that an exec plugin prints (`aws`, `gke-gcloud-auth-plugin`, ...).

    They are cached until they expire.
    """

    def __init__(
        self, config: ExecConfig, *, entry: str, directory: Path, cluster: JSONObject, clock: Clock | None = None
    ) -> None:
        if config.api_version not in EXEC_VERSIONS:
            raise ConfigError(
                f"{entry}.apiVersion: Unsupported value: {config.api_version!r}: supported values: {EXEC_VERSIONS[0]}. "
                "Update the plugin and its entry"
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
        """Return the cached credentials of the plugin. If they have expired, rerun the plugin."""
        async with self._lock:
            if self._current is None or (self._expires is not None and self._clock.now() >= self._expires - LEEWAY):
                self._current = None
                self._current = await self._run()
            return self._current

    async def renew(self, rejected: Credentials) -> bool:
        """Rerun the plugin, unless a different task has already rerun it."""
        if self._current == rejected:
            self._current = None
        return await self.get() != rejected

    async def _run(self) -> Credentials:
        interactive = self._is_interactive()
        program = (
            str(self._directory / self._config.command) if os.sep in self._config.command else self._config.command
        )
        try:
            transport, output = await asyncio.get_running_loop().subprocess_exec(
                _Output,
                program,
                *self._config.args,
                env=self._environment(os.environ, interactive=interactive),
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None,
            )
        except OSError as error:
            hint = f"; {self._config.install_hint.strip()}" if self._config.install_hint else ""
            raise ConfigError(f"{self._entry}.command: cannot run {program}: {error.strerror}{hint}") from error
        except ValueError as error:  # a null character, or = in a variable name
            raise ConfigError(f"{self._entry}: cannot run {program!r}: {error}") from error
        return self._parse(await self._output(transport, output))

    async def _output(self, transport: asyncio.SubprocessTransport, output: "_Output") -> bytes:
        try:
            async with timeouts.within(EXEC_TIMEOUT):
                await output.is_complete
                if len(output.printed) > LARGEST_OUTPUT:
                    raise ConfigError(
                        f"{self._entry}: {self._config.command} printed more than {LARGEST_OUTPUT >> 20} MiB. Check "
                        "that it prints one ExecCredential"
                    )
                await output.has_exited
        except TimeoutError as error:
            raise ConfigError(
                f"{self._entry}: {self._config.command} did not print credentials within {EXEC_TIMEOUT:.0f} s"
            ) from error
        finally:
            if not output.has_exited.done():
                transport.kill()
                await output.has_exited
            transport.close()
        if code := transport.get_returncode():
            raise ConfigError(f"{self._entry}: {self._config.command} failed with exit code {code}")
        return bytes(output.printed)

    def _parse(self, output: bytes) -> Credentials:
        try:
            printed = msgspec.json.decode(output, type=_ExecCredential)
        except msgspec.DecodeError as error:
            raise ConfigError(
                f"{self._entry}: {self._config.command} did not print a valid ExecCredential: {error}"
            ) from error
        if printed.api_version != self._config.api_version:
            raise ConfigError(
                f"{self._entry}: {self._config.command} printed {printed.api_version}, but the entry specifies "
                f"{self._config.api_version}"
            )
        status = printed.status
        if not status.token and not (status.client_certificate_data and status.client_key_data):
            raise ConfigError(f"{self._entry}: {self._config.command} did not print a token or a client certificate")
        self._expires = status.expiration_timestamp
        certificate, key = status.client_certificate_data or "", status.client_key_data or ""
        token = checked_token((status.token or "").strip(), f"{self._entry}: {self._config.command}")
        return Credentials(token, certificate.encode(), key.encode())

    def _is_interactive(self) -> bool:
        mode = self._config.interactive_mode
        is_terminal = sys.stdin is not None and sys.stdin.isatty()
        if mode == "Always" and not is_terminal:
            raise ConfigError(f"{self._entry}: {self._config.command} requires an interactive terminal")
        return mode != "Never" and is_terminal

    def _environment(self, inherited: Mapping[str, str], *, interactive: bool) -> dict[str, str]:
        spec: JSONObject = {"interactive": interactive}
        if self._config.provide_cluster_info:
            spec["cluster"] = self._cluster
        info = {"apiVersion": self._config.api_version, "kind": "ExecCredential", "spec": spec}
        variables = {variable.name: variable.value for variable in self._config.env}
        return {**inherited, **variables, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}


class _Output(asyncio.SubprocessProtocol):
    """Collects the output of a plugin.

    `asyncio.subprocess.Process.wait` does not return while output is unread, or while a child of the plugin has its output
    open. `has_exited` does not depend on the output.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.printed = bytearray()
        self.is_complete: asyncio.Future[None] = loop.create_future()
        self.has_exited: asyncio.Future[None] = loop.create_future()

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:  # noqa: ARG002 - asyncio's signature
        """Append the data. The output is complete if its size exceeds the limit."""
        self.printed += data if isinstance(data, bytes) else data.encode()
        if len(self.printed) > LARGEST_OUTPUT:
            self._complete()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - likewise
        """Mark the output as complete when the plugin closes it."""
        self._complete()

    def process_exited(self) -> None:
        """Record that the plugin has exited."""
        self.has_exited.set_result(None)

    def _complete(self) -> None:
        if not self.is_complete.done():
            self.is_complete.set_result(None)
