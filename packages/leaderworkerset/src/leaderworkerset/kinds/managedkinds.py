"""Lists the kinds that the manager serves. To add a kind, add it to this module."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import descriptions
from leaderworkerset.capabilities import names
from leaderworkerset.core.gang.gangs import Gangs
from leaderworkerset.core.policies.gang import NO_GANG, Gang, NoGang, Support
from leaderworkerset.kinds.disaggregatedset import ROLE_SCALER, disaggregatedset
from leaderworkerset.kinds.leaderworkerset import leaderworkerset
from leaderworkerset.kinds.pod import pod
from leaderworkerset.kinds.registry import Registry

Served: TypeAlias = Callable[[], Collection[str]]
"""Returns the gang schedulers whose kinds the API server serves."""


def no_providers() -> Collection[str]:
    """Return no names, which is the default without gang scheduler detection."""
    return ()


Configured: TypeAlias = Mapping[str, Any]
"""The settings of enabled capabilities by capability name."""

NOTHING_MORE: Final[Configured] = {}


def managed_kinds(
    provider: str = "",
    served: Served = no_providers,
    *,
    workload_aware: bool = False,
    configured: Configured = NOTHING_MORE,
) -> Registry:
    """Return the kinds for a gang scheduling provider (a name, empty, or `auto`, which selects from `served`).

    `workload_aware` is the feature gate of `spec.scheduling`, and `configured` are the capability settings.
    """
    gang: Gang = NoGang(Support(workload_aware)) if workload_aware else NO_GANG
    if not provider:
        kinds = _registry(gang, lambda: gang, configured)
    else:
        gang = gangs = Gangs(default=provider, is_enabled=workload_aware)
        kinds = _registry(gangs, lambda: replace(gangs, served=served()), configured)
    if (budgets := configured.get(names.DISRUPTION)) is not None:
        from leaderworkerset.kinds.disruptionbudget import disruption_budget

        kinds = kinds.with_kind(disruption_budget(budgets))
    if configured.get(names.POD_ADMISSION):
        from leaderworkerset.kinds.mutatingadmissionpolicy import pod_policy

        kinds = kinds.with_kind(pod_policy(gang))
    if not configured.get(names.RECORDER):
        return kinds
    from leaderworkerset.kinds.recordercaches import CACHES  # other managers do not require it
    from leaderworkerset.recording.permissions import RECORDING

    return replace(kinds, additional_caches=CACHES, additional_permissions=RECORDING)


def _registry(gang: Gang, ask: Callable[[], Gang], configured: Configured) -> Registry:
    own = leaderworkerset(gang, ask, configured)
    return Registry((own, pod(gang, ask, configured), disaggregatedset(ask), ROLE_SCALER))


MANAGED: Final = managed_kinds()
"""The kinds of a manager without gang scheduling."""


async def full_definitions(client: Client) -> Sequence[JSONObject]:
    """Return the CRDs with descriptions for `kubectl explain` in this cluster."""
    response = await client.send(Request("GET", descriptions.DOCUMENT_PATH))
    return MANAGED.described_definitions(msgspec.json.decode(response.body))
