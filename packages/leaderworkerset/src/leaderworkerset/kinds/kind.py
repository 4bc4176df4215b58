"""A kind as a value: its definition, its controllers, its webhooks, its metrics.

In: the declarations of the packages `api`, `controllers` and `webhooks`. Out: the parts of the registry
(`registry.py`).
"""

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.controllers.instruments import KindMetrics, Meter
from leaderworkerset.controllers.spec import ControllerSpec
from leaderworkerset.webhooks.spec import WebhookSpec

BuildMetrics: TypeAlias = Callable[[Meter], KindMetrics]
"""Registers the metrics of a kind, and returns the object that counts them."""


class Definition(Struct, frozen=True):
    """The functions that build the definition (CRD) of a kind.

    `build` returns it without descriptions, `describe` with them. The parameter of `describe` is the OpenAPI document
    of core/v1 of the target API server, since pod templates have the descriptions of that server.
    """

    build: Callable[[], JSONObject]
    describe: Callable[[JSONObject], JSONObject]


class Kind(Struct, frozen=True, kw_only=True):
    """One kind with its definition, controllers, webhooks and metrics; a kind of Kubernetes itself has no definition."""

    resource: Resource
    definition: Definition | None = None
    controllers: tuple[ControllerSpec, ...] = ()
    webhooks: tuple[WebhookSpec, ...] = ()
    metrics: tuple[BuildMetrics, ...] = ()
