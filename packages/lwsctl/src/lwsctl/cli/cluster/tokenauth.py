"""Checks the tokens of the users of a shared dashboard, and runs commands with these tokens.

The API server returns the user of the token (SelfSubjectReview), and whether this user may read the objects that the
dashboard shows (SelfSubjectAccessReview). The dashboard itself does not need permissions for these requests.
"""

import base64
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import Struct

from kuberuntime.access.access import Access
from kuberuntime.access.credentials import SecretEntry, StoredCredentials
from kuberuntime.client.client import Client
from kuberuntime.errors import APIError, ConfigError, UnauthorizedError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CORE_EVENTS, PODS, Resource
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.cli.cluster.accessreviews import Permission, is_allowed
from lwsctl.cli.cluster.commandrunner import CommandRunner
from lwsctl.dashboard.actions import Runner
from lwsctl.dashboard.loginsessions import LoginRejectedError

WHO: Final = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)
NEEDED: Final = (
    Permission("list", LEADERWORKERSETS.group, LEADERWORKERSETS.plural),
    Permission("list", PODS.group, PODS.plural),
    Permission("list", CORE_EVENTS.group, CORE_EVENTS.plural),
    Permission("get", PODS.group, PODS.plural, "log"),
)
"""The permissions that a user needs in the dashboard's namespace, or in all namespaces."""


class TokenAuthenticator(Struct, frozen=True):
    """Checks tokens for one cluster.

    `namespace` is the namespace that the dashboard shows, or empty for all namespaces.
    """

    access: Access
    namespace: str
    allows_actions: bool

    async def admit(self, token: str) -> str:
        """Return the name of the user.

        Raise `LoginRejectedError` if the token is invalid, or the user does not have a read permission.
        """
        try:
            async with self._client(token) as client:
                review = await client.create(WHO, {"apiVersion": WHO.api_version, "kind": WHO.kind, "metadata": {}})
                user = str((meta.status(review).get("userInfo") or {}).get("username") or "")
                lacking = [
                    permission for permission in NEEDED if not await is_allowed(client, permission, self.namespace)
                ]
        except UnauthorizedError as error:
            raise LoginRejectedError("The API server rejected this token. The token might have expired.") from error
        except (APIError, ConfigError) as error:
            raise LoginRejectedError(f"The token is invalid: {error}") from error
        if not user or lacking:
            where = f"namespace {self.namespace}" if self.namespace else "all namespaces"
            missing = ", ".join(f"{permission.verb} {permission.title}" for permission in lacking)
            raise LoginRejectedError(f"{user or 'this user'} is not permitted to {missing} in {where}.")
        return user

    def runner(self, token: str) -> Runner | None:
        """Return an object that runs commands as this user, or None if the dashboard is read-only."""
        if not self.allows_actions:
            return None

        async def run(arguments: Sequence[str]) -> tuple[bool, str]:
            with TemporaryDirectory(prefix="lws-user-") as directory:  # readable only by this user (mode 0700)
                path = Path(directory) / "kubeconfig"
                path.touch(mode=0o600)
                path.write_text(json.dumps(self._kubeconfig(token)), encoding="utf-8")
                option = f"--kubeconfig={path}"
                is_done, text = await CommandRunner([option]).run(arguments)
                # Commands in the output contain this file, but the user has a different one.
                return is_done, text.replace(f" {option}", "").replace(f" --kubeconfig {path}", "")

        return run

    @asynccontextmanager
    async def _client(self, token: str) -> AsyncIterator[Client]:
        from kuberuntime.client.http import HTTPTransport

        nothing = SecretEntry("")
        own = StoredCredentials(token=SecretEntry("token", token.encode()), certificate=nothing, key=nothing)
        client = Client(HTTPTransport(replace(self.access, credentials=own), user_agent="lws-dashboard"))
        try:
            yield client
        finally:
            await client.close()

    def _kubeconfig(self, token: str) -> JSONObject:
        tls = self.access.tls
        cluster: JSONObject = {"server": self.access.server}
        cluster |= {"certificate-authority-data": base64.b64encode(tls.authority).decode()} if tls.authority else {}
        cluster |= {"tls-server-name": tls.server_name} if tls.server_name else {}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "own", "cluster": cluster}],
            "users": [{"name": "own", "user": {"token": token}}],
            "contexts": [{"name": "own", "context": {"cluster": "own", "user": "own"}}],
            "current-context": "own",
        }
