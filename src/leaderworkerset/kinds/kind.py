"""A kind as a value: its definition, its controllers, its webhooks, its metrics.

In: what the packages `api`, `controllers` and `webhooks` declare. Out: what the registry (`registry.py`) is made of.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.controllers.instruments import KindMetrics, Meter
from leaderworkerset.controllers.spec import ControllerSpec
from leaderworkerset.webhooks.spec import WebhookSpec

BuildMetrics: TypeAlias = Callable[[Meter], KindMetrics]
"""Register the metrics of a kind, and return who counts them."""


@dataclass(frozen=True, slots=True)
class Definition:
    """How the definition (CRD) of a kind is built.

    `build` returns it without descriptions, `describe` with them; what comes in is the OpenAPI document of core/v1 of
    the API server that it is for, since pod templates are described in the words of that server.
    """

    build: Callable[[], JSONObject]
    describe: Callable[[JSONObject], JSONObject]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind, and what serves it; a kind of Kubernetes itself has no definition."""

    resource: Resource
    definition: Definition | None = None
    controllers: tuple[ControllerSpec, ...] = ()
    webhooks: tuple[WebhookSpec, ...] = ()
    metrics: tuple[BuildMetrics, ...] = ()
