"""Which versions of Kubernetes are tested, and a warning in the log on another one."""

from typing import Final

import msgspec
import structlog

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.errors import KubeError
from kuberuntime.objects import decimals
from kuberuntime.objects.meta import JSONObject

TESTED: Final = (36, 37)
"""The minor versions of Kubernetes whose control planes the tests run; docs/how-to/install.md says the same."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def read(client: Client) -> str:
    """Return the version of the API server, as `v1.36.3`."""
    answer = await client.send(Request("GET", "/version"))
    try:
        found = msgspec.json.decode(answer.body, type=JSONObject)
    except msgspec.DecodeError as error:
        raise KubeError(f"/version: {error}") from error
    return str(found.get("gitVersion") or "of unknown version")


def minor(version: str) -> int | None:
    """Return the minor version, None where the text has none.

    >>> minor("v1.36.3"), minor("v1.27+"), minor("of unknown version")
    (36, 27, None)
    """
    parts = version.removeprefix("v").split(".")[1:2]
    return decimals.natural(parts[0].rstrip("+")) if parts else None


def untested(version: str) -> str:
    """Return the note about an untested version; empty for a tested version.

    >>> untested("v1.36.3"), untested("v1.33.1")
    ('', 'Kubernetes v1.33.1 is not tested with this version of lws: 1.36 and 1.37 are')
    """
    if minor(version) in TESTED:
        return ""
    tested = " and ".join(f"1.{one}" for one in TESTED)
    return f"Kubernetes {version} is not tested with this version of lws: {tested} are"


async def warn(client: Client) -> None:
    """Log a warning about an untested API server; ignore an API server that does not answer."""
    try:
        text = untested(await read(client))
    except KubeError as error:
        log.debug("version of Kubernetes not read", error=str(error))
        return
    if text:
        log.warning("Kubernetes not tested", text=text)
