"""The kinds that the manager serves: a new one is added here."""

from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import descriptions
from leaderworkerset.core.disruption.disruptionsettings import DisruptionSettings
from leaderworkerset.core.gang.gangs import Gangs
from leaderworkerset.core.maintenance.maintenancesettings import MaintenanceSettings
from leaderworkerset.core.policies.gang import NO_GANG, Gang, NoGang, Support
from leaderworkerset.core.restarts.settings import DEFAULTS, RestartSettings
from leaderworkerset.kinds.disaggregatedset import ROLE_SCALER, disaggregatedset
from leaderworkerset.kinds.leaderworkerset import leaderworkerset
from leaderworkerset.kinds.pod import pod
from leaderworkerset.kinds.registry import Registry

Served: TypeAlias = Callable[[], Collection[str]]
"""Returns the names of the gang schedulers whose kinds the API server serves now."""


def nothing() -> Collection[str]:
    """Return no names: the default for `auto` without detection."""
    return ()


class OptIns(msgspec.Struct, frozen=True):
    """The optional functions of a manager.

    With `records` failures are recorded, with `disruption` groups get disruption budgets, with
    `maintenance` they are moved off closed nodes.
    """

    records: bool = False
    disruption: DisruptionSettings | None = None
    maintenance: MaintenanceSettings | None = None


NOTHING_MORE: Final = OptIns()


def managed(
    provider: str = "",
    served: Served = nothing,
    restarts: RestartSettings = DEFAULTS,
    *,
    workload_aware: bool = False,
    opted: OptIns = NOTHING_MORE,
) -> Registry:
    """Return the kinds with this provider of gang scheduling: a name, `auto`, or none; `auto` chooses among `served`.

    `restarts` is how groups that fail are recreated, `workload_aware` the feature gate of `spec.scheduling`, `opted` what
    is off by default, as it needs further permissions.
    """
    if not provider:
        none = NoGang(Support(workload_aware)) if workload_aware else NO_GANG
        kinds = _registry(none, lambda: none, restarts, opted.maintenance)
    else:
        gangs = Gangs(default=provider, is_enabled=workload_aware)
        kinds = _registry(gangs, lambda: replace(gangs, served=served()), restarts, opted.maintenance)
    if opted.disruption is not None:
        from leaderworkerset.kinds.disruptionbudget import disruption_budget

        kinds = kinds.with_kind(disruption_budget(opted.disruption))
    if not opted.records:
        return kinds
    from leaderworkerset.kinds.besidecontrollers import RECORDER  # no other manager needs it

    return replace(kinds, beside=(RECORDER,))


def _registry(
    gang: Gang, ask: Callable[[], Gang], restarts: RestartSettings, maintenance: MaintenanceSettings | None
) -> Registry:
    return Registry(
        (leaderworkerset(gang, ask, maintenance), pod(gang, ask, restarts), disaggregatedset(ask), ROLE_SCALER)
    )


MANAGED: Final = managed()
"""The kinds of a manager without gang scheduling."""


async def full_definitions(client: Client) -> Sequence[JSONObject]:
    """Return the definitions with the descriptions for this cluster's `kubectl explain`."""
    response = await client.send(Request("GET", descriptions.DOCUMENT_PATH))
    return MANAGED.described_definitions(msgspec.json.decode(response.body))
