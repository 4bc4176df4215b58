"""Finds a field that the manager and another client repeatedly overwrite (docs/adr/0030). Pure.

The input is the manager's events, which are repeated while the conflict continues.
"""

from datetime import timedelta
from typing import Final

from kuberuntime.objects import meta
from leaderworkerset.decisions.failureevents import CONTENTION
from lwsctl.diagnosis.causes.unreconciled import set_subject
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.ranks import quote_message
from lwsctl.model.diagnosis import Person

LASTING: Final = timedelta(minutes=2)
"""The period without events after which a conflict is considered resolved.

During a conflict, events occur every 30 s.
"""

CODE: Final = "LWS-E120"


@cause(
    code=CODE,
    title="another component reverts a field",
    meaning="The manager and another component, such as a GitOps tool or an autoscaler, repeatedly overwrite the same field. During the conflict, the manager writes the field only every 30 seconds.",
    person=Person.ADMINISTRATOR,
    remedy="Make sure that only one component manages the field, for example with `ignoreDifferences` in Argo CD. Scale the LeaderWorkerSet or DisaggregatedSet instead of the objects that it owns.",
)
def find_contested_field(observed: Observed) -> Finding | None:
    """Find a field that another client repeatedly reverts in an object that the manager owns."""
    obj, kind = observed.view.object, set_subject(observed).kind
    warnings = [
        warning
        for warning in observed.warnings.about(meta.namespace(obj), kind, meta.name(obj))
        if warning.reason == CONTENTION and warning.uid == meta.uid(obj)
    ]
    newest = max(warnings, key=lambda warning: warning.last, default=None)
    if newest is None or observed.now - newest.last > LASTING:
        return None
    return Finding(
        subject=set_subject(observed),
        sentence=f"another writer changes {meta.name(obj)}: {quote_message(newest.message)}",
        evidence=(f"event {newest.reason} of {kind} {meta.name(obj)}",),
        steps=(
            observed.lws(f"events {meta.name(obj)} --warnings"),
            "stop the other writer, or exclude the field in its configuration",
        ),
    )


def contention_note(observed: Observed) -> str:
    """Return a description of the field conflict of a healthy set, or an empty string without a conflict."""
    finding = find_contested_field.find(observed)
    return f"{finding.sentence} ({CODE})" if finding is not None else ""
