"""Finds stored values that admission would now reject. They remain valid in the cluster, even in updates. Pure.

Such values exist because the scale subresource does not call webhooks, or because the cluster temporarily had no
webhooks (docs/adr/0029-stored-values.md).
"""

from kuberuntime.objects.field import FieldError
from kuberuntime.objects.gotypes.mismatch import GoTypeError
from leaderworkerset.api.leaderworkerset import DecodeError, decode
from leaderworkerset.decisions.admissionchecks import stored_disaggregatedset_errors, stored_leaderworkerset_errors
from lwsctl.diagnosis.observed import Observed


def errors(observed: Observed) -> list[FieldError]:
    """Return the errors that creating the stored object would now cause."""
    try:
        if observed.set_view is not None:
            return stored_disaggregatedset_errors(observed.set_view.object)
        return stored_leaderworkerset_errors(decode(observed.view.object))
    except DecodeError as error:
        return [error.error]
    except GoTypeError:  # the controllers report it
        return []
