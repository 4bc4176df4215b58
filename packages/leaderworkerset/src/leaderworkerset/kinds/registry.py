"""Collects the kinds of one process, with their controllers, webhooks, metrics and CRDs.

Input: kinds. Output: their parts, in the order of the kinds. Names that identify parts in logs, metrics and URLs are
unique.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from kuberuntime.policyrules import Permission
from leaderworkerset.api import labels
from leaderworkerset.controllers import permissions
from leaderworkerset.controllers.caches import Cache
from leaderworkerset.controllers.instruments import Instruments, Meter
from leaderworkerset.controllers.spec import ControllerSpec
from leaderworkerset.kinds.kind import Kind
from leaderworkerset.webhooks.review import Decide
from leaderworkerset.webhooks.spec import WebhookSpec


class Registry(Struct, frozen=True):
    """A collection of kinds. `reporter` is the name of the process in events (`reportingController`).

    A component that runs with the controllers, on which no reconciliation depends, reads the additional caches.
    """

    kinds: tuple[Kind, ...]
    reporter: str = labels.EVENT_REPORTER
    additional_caches: tuple[Cache, ...] = ()
    additional_permissions: tuple[Permission, ...] = ()

    def __post_init__(self) -> None:
        _check_unique("kind", [kind.resource.group_resource for kind in self.kinds])
        _check_unique("controller", [spec.name for spec in self.controllers])
        _check_unique("webhook", [spec.name for spec in self.webhooks])
        _check_unique("webhook path", [spec.path for spec in self.webhooks])

    def with_kind(self, kind: Kind) -> "Registry":
        """Return a registry with an additional kind."""
        return replace(self, kinds=(*self.kinds, kind))

    @property
    def controllers(self) -> tuple[ControllerSpec, ...]:
        """Return all controllers."""
        return tuple(spec for kind in self.kinds for spec in kind.controllers)

    @property
    def caches(self) -> tuple[Cache, ...]:
        """Return all caches that are read, with a separate entry for each reader."""
        return (*(cache for spec in self.controllers for cache in spec.caches), *self.additional_caches)

    @property
    def webhooks(self) -> tuple[WebhookSpec, ...]:
        """Return all webhooks."""
        return tuple(spec for kind in self.kinds for spec in kind.webhooks)

    @property
    def decisions(self) -> Mapping[str, Decide]:
        """Return the admission functions by URL path."""
        return {spec.path: spec.decide for spec in self.webhooks}

    @property
    def custom_resources(self) -> tuple[Resource, ...]:
        """Return the resources with a CRD."""
        return tuple(kind.resource for kind in self.kinds if kind.definition is not None)

    @property
    def permissions(self) -> tuple[Permission, ...]:
        """Return all permissions of controllers and additional components."""
        requirements = tuple(permission for spec in self.controllers for permission in spec.permissions)
        requirements += (*(cache.permission for cache in self.additional_caches), *self.additional_permissions)
        return (*requirements, *permissions.RECORD_EVENTS) if requirements else ()

    def definitions(self) -> Sequence[JSONObject]:
        """Build the CRDs without descriptions."""
        return [kind.definition.build() for kind in self.kinds if kind.definition is not None]

    def described_definitions(self, document: JSONObject) -> Sequence[JSONObject]:
        """Build the CRDs with descriptions. `document` is the OpenAPI document of core/v1."""
        return [kind.definition.describe(document) for kind in self.kinds if kind.definition is not None]

    def instruments(self, meter: Meter) -> Instruments:
        """Return the controller metrics of a process."""
        return Instruments(meter, [build(meter) for kind in self.kinds for build in kind.metrics])


def _check_unique(what: str, names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{what} {twice[0]!r} is registered twice. Use a unique {what} for each kind")
