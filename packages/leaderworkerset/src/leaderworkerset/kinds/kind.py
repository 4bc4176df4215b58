"""Defines a kind with its CRD, controllers, webhooks, and metrics.

Input: the declarations of the packages `api`, `controllers` and `webhooks`. Output: the parts of the registry
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
"""Registers the metrics of a kind, and returns the object that updates them."""


class Definition(Struct, frozen=True):
    """The functions that build the CRD of a kind.

    `build` returns it without descriptions, `describe` with them. The parameter of `describe` is the core/v1 OpenAPI
    document of the target API server, which contains the descriptions of pod templates.
    """

    build: Callable[[], JSONObject]
    describe: Callable[[JSONObject], JSONObject]


class Kind(Struct, frozen=True, kw_only=True):
    """A kind with its CRD, controllers, webhooks and metrics. Built-in kinds have no CRD."""

    resource: Resource
    definition: Definition | None = None
    controllers: tuple[ControllerSpec, ...] = ()
    webhooks: tuple[WebhookSpec, ...] = ()
    metrics: tuple[BuildMetrics, ...] = ()
