"""Declares the kinds DisaggregatedSet and DisaggregatedSetRoleScaler, which share one controller."""

from typing import Final

from leaderworkerset.api import disaggregatedset_crd as crd
from leaderworkerset.api.resources import DISAGGREGATED_SETS, ROLE_SCALERS
from leaderworkerset.controllers import disaggregatedset as controller
from leaderworkerset.kinds.kind import Definition, Kind
from leaderworkerset.webhooks import handlers
from leaderworkerset.webhooks.handlers import Ask


def disaggregatedset(ask: Ask) -> Kind:
    """Return the kind DisaggregatedSet. `ask` returns the available gang schedulers."""
    return Kind(
        resource=DISAGGREGATED_SETS,
        definition=Definition(crd.disaggregatedset_crd, crd.describe_disaggregatedset),
        controllers=(controller.SPEC,),
        webhooks=handlers.disaggregatedset_webhooks(ask),
    )


ROLE_SCALER: Final = Kind(
    resource=ROLE_SCALERS,
    definition=Definition(crd.role_scaler_crd, crd.describe_role_scaler),
)
