"""Reads the Secrets that a pod mounts or uses in variables, in order to mask their values in quoted logs.

Secrets are read only to quote a log, which already requires a request. If the user does not have permission to read a
Secret, its values are masked only if they look like secrets.
"""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from kuberuntime import timeouts
from kuberuntime.client.client import Client
from kuberuntime.errors import KubeError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import SECRETS
from kuberuntime.texts import masking
from kuberuntime.texts.masking import Mask

MOST: Final = 8
"""The maximum number of Secrets that are read for one quotation."""

PATIENCE: Final = 2.0


async def build_mask(client: Client, pods: Sequence[JSONObject]) -> Mask:
    """Return a mask for the values of the pods' Secrets, and of variables whose name indicates a secret."""
    keys = dict.fromkeys(ObjectKey(meta.namespace(pod), name) for pod in pods for name in secret_names(pod) if name)
    secrets = await asyncio.gather(*(_find(client, key) for key in islice(keys, MOST)))
    return Mask(masking.secret_values([secret for secret in secrets if secret is not None], pods))


def secret_names(pod: JSONObject) -> Iterator[str]:
    """Yield the names of Secrets that a pod mounts or uses in environment variables. A name can be empty.

    >>> list(filter(None, secret_names({"spec": {"volumes": [{"secret": {"secretName": "tls"}}]}})))
    ['tls']
    """
    spec = meta.spec(pod)
    for volume in spec.get("volumes") or ():
        sources = (volume.get("projected") or {}).get("sources") or ()
        yield (volume.get("secret") or {}).get("secretName") or ""
        yield from ((source.get("secret") or {}).get("name") or "" for source in sources)
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        for variable in container.get("env") or ():
            yield ((variable.get("valueFrom") or {}).get("secretKeyRef") or {}).get("name") or ""
        yield from ((source.get("secretRef") or {}).get("name") or "" for source in container.get("envFrom") or ())


async def _find(client: Client, key: ObjectKey) -> JSONObject | None:
    try:
        async with timeouts.within(PATIENCE):
            return await client.find(SECRETS, key)
    except (KubeError, TimeoutError):
        return None
