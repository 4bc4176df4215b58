"""Checks manifests without a cluster, including defaults, errors and warnings of webhooks and controllers."""

from leaderworkerset.capabilities.deciding import stored_errors as stored_leaderworkerset_errors
from leaderworkerset.capabilities.deciding import validate_leaderworkerset
from leaderworkerset.capabilities.deciding import warnings as leaderworkerset_warnings
from leaderworkerset.core.admission.disaggregatedset import stored_errors as stored_disaggregatedset_errors
from leaderworkerset.core.admission.disaggregatedset import validate_disaggregatedset
from leaderworkerset.core.admission.disaggregatedset import warnings as disaggregatedset_warnings
from leaderworkerset.core.admission.leaderworkerset import default_leaderworkerset
from leaderworkerset.core.leaderworkerset.invalidfields import unreadable_reason as unreadable_leaderworkerset
from leaderworkerset.core.policies.gang import NoGang, Support
from leaderworkerset.core.reconcilefailure import REASON as RECONCILE_FAILED
from leaderworkerset.core.reconcilefailure import is_failing as is_reconcile_failing
from leaderworkerset.core.reconcilefailure import message as reconcile_failure_message
