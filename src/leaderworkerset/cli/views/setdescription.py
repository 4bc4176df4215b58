"""The description of a DisaggregatedSet: spec, roles, revisions, slices, LeaderWorkerSets, events, logs. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.cli.views import description, output
from leaderworkerset.views.disaggregation import PartView, SetView
from leaderworkerset.views.events.eventhistory import Happening
from leaderworkerset.views.reasons import reasons
from leaderworkerset.views.wording import counted

ROLES = ("ROLE", "READY", "DESIRED", "UPDATED", "SIZE", "SCALING", "ROLLOUT", "IMAGES")
PARTS = ("LEADERWORKERSET", "SLICE", "ROLE", "REVISION", "READY", "DESIRED", "WHY")
REVISIONS = ("REVISION", "LEADERWORKERSETS", "READY", "DESIRED")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedSet:
    """The content of a description: a view, the events of the set and of its objects, the last lines of failed containers.

    `events` is None if the user may not list them. `lws` is the command in hints, for this cluster.
    """

    view: SetView
    events: Sequence[Happening] | None = ()
    logs: Sequence[str] = ()
    lws: str = "lws"


def lines(shown: DescribedSet, now: datetime) -> list[str]:
    """Return the whole description."""
    view = shown.view
    return [
        *_head(view, now),
        "",
        "Roles:",
        *output.table(ROLES, [_role(view, role) for role in list(meta.spec(view.object).get("roles") or [])], "  "),
        *_revisions(view),
        *_parts(view),
        *description.conditions(view.object, now),
        *description.logs(shown.logs),
        *description.events(shown.events, f"{shown.lws} events LWS shows those of one LeaderWorkerSet", now),
    ]


def _head(view: SetView, now: datetime) -> list[str]:
    return description.facts(
        [
            ("Name", view.name),
            ("Namespace", view.namespace),
            ("Created", description.when(view.created, now)),
            ("Labels", description.pairs(meta.labels(view.object))),
            ("Slices", str(meta.spec(view.object).get("slices", 1))),
            ("Groups", f"{view.desired} desired, {view.ready} ready, {view.updated} updated"),
            ("Rollout", view.rollout),
            ("Placement", _placement(view.object)),
        ]
    )


def _placement(obj: JSONObject) -> str:
    policy = meta.spec(obj).get("placementPolicy") or {}
    return " ".join(str(policy[name]) for name in ("type", "topology") if policy.get(name))


def _role(view: SetView, role: JSONObject) -> tuple[str, ...]:
    name, spec = str(role.get("name")), role.get("spec") or {}
    count = next(one for one in view.roles if one.name == name)
    statuses = meta.status(view.object).get("roleStatuses") or []
    updated = next((int(one.get("updatedReplicas", 0)) for one in statuses if one.get("name") == name), 0)
    template = spec.get("leaderWorkerTemplate") or {}
    return (
        name,
        str(count.ready),
        str(count.desired),
        str(updated),
        str(template.get("size", 1)),
        str((role.get("scaling") or {}).get("mode") or "Static"),
        description.rollout_of(spec) or "-",
        ", ".join(_images(template)) or "-",
    )


def _images(template: JSONObject) -> list[str]:
    found = [
        str(container.get("image") or "-")
        for one in ("leaderTemplate", "workerTemplate")
        for container in ((template.get(one) or {}).get("spec") or {}).get("containers") or []
    ]
    return list(dict.fromkeys(found))


def _revisions(view: SetView) -> list[str]:
    """Return a line for each revision, if there are several: a rollout is in progress."""
    revisions = dict.fromkeys(part.revision for part in view.parts)
    if len(revisions) < 2:
        return []
    rows = [_revision(one, [part for part in view.parts if part.revision == one]) for one in revisions]
    return ["", "Revisions:", *output.table(REVISIONS, rows, "  ")]


def _revision(name: str, parts: Sequence[PartView]) -> tuple[str, ...]:
    ready, desired = sum(part.view.ready for part in parts), sum(part.view.desired for part in parts)
    return name, str(len(parts)), str(ready), str(desired)


def _parts(view: SetView) -> list[str]:
    if not view.parts:
        return ["", "LeaderWorkerSets: none yet"]
    rows = [
        (
            part.view.name,
            part.slice,
            part.role,
            part.revision,
            str(part.view.ready),
            str(part.view.desired),
            reasons(part.view).removeprefix("; "),
        )
        for part in view.parts
    ]
    title = f"LeaderWorkerSets: {counted(len(view.parts), 'set')} (`lws describe` of a name says more)"
    return ["", title, *output.table(PARTS, rows, "  ")]
