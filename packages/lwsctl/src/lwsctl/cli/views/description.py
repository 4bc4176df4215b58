"""Formats the description of a LeaderWorkerSet, a group or a rank, including events and logs. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.texts.masking import mask_message
from leaderworkerset.api import groupname
from leaderworkerset.api.eventvalue import EventValue
from leaderworkerset.api.usersettings import SETTINGS
from lwsctl.cli.views import eventlines, output, specfields, tables
from lwsctl.model.disaggregatedset import SetView, Shown
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.views import outcome, recreations, wording
from lwsctl.views.reasons import reasons
from lwsctl.views.selection import Selection
from lwsctl.views.wording import format_count

RECENT: Final = 20
"""The number of events in a description. `lws events` shows all events."""

WIDTH: Final = 16

Fact = tuple[str, str]


class Described(Struct, frozen=True, kw_only=True):
    """The content of a description. Contains the selected view, its events, and the last lines of failed containers.

    `events` is None if the user does not have permission to list them. `lws` is the command in hints, with the
    options for this cluster.
    """

    selection: Selection
    view: Shown
    events: Sequence[EventValue] | None = ()
    logs: Sequence[str] = ()
    lws: str = "lws"


def lines(content: Described, now: datetime) -> list[str]:
    """Return the complete description."""
    view, selection, hint = content.view, content.selection, f"{content.lws} events {content.selection}"
    if isinstance(view, SetView):
        head, hint = (
            _describe_disaggregatedset(view, now),
            f"use {content.lws} events LWS to show the events of one LeaderWorkerSet",
        )
    elif selection.rank is not None:
        rank = next(iter(view.ranks), None)
        head = _describe_rank(view, rank, now) if rank else []
    elif selection.group is not None:
        head = _describe_group(view, view.groups[0], now) if view.groups else []
    else:
        head = _describe_set(view, now)
    return [*head, *log_lines(content.logs), *event_lines(content.events, hint, now)]


def align_facts(rows: Sequence[Fact]) -> list[str]:
    """Align names and values. Names without a value are omitted.

    >>> align_facts([("Name", "web"), ("Node", "")])
    ['Name:           web']
    """
    return [f"{name + ':':<{WIDTH - 1}} {value}" for name, value in rows if value]


def _describe_set(view: View, now: datetime) -> list[str]:
    spec, template = meta.spec(view.object), meta.spec(view.object).get("leaderWorkerTemplate") or {}
    head = align_facts(
        [
            ("Name", view.name),
            ("Namespace", view.namespace),
            ("Created", format_time(view.created, now)),
            ("Labels", join_pairs(meta.labels(view.object))),
            ("Groups", f"{view.desired} desired, {view.ready} ready, {view.up_to_date} up to date"),
            ("Size", wording.format_count(int(template.get("size", 1)), "rank")),
            *specfields.facts(spec),
        ]
    )
    return [
        *head,
        *describe_template("Leader", template.get("leaderTemplate")),
        *describe_template(
            "Worker" if template.get("leaderTemplate") else "Every rank", template.get("workerTemplate")
        ),
        *_settings(view.object),
        *conditions(view.object, now),
        "",
        "Ranks:" if any(group.ranks for group in view.groups) else "Ranks:          none",
        *(f"  {line}" for line in tables.rank_lines(view, now, tables.TableOptions()) if view.groups),
    ]


def _settings(obj: JSONObject) -> list[str]:
    """Return the annotations of the user as a table that explains them."""
    values = meta.annotations(obj)
    rows = [(row.name, values[row.annotation], row.description) for row in SETTINGS if row.annotation in values]
    return ["", "Settings:", *output.table(("ANNOTATION", "VALUE", "MEANING"), rows, "  ")] if rows else []


def describe_template(title: str, template: JSONObject | None) -> Iterator[str]:
    """Yield the containers in a template with their image, command and requests."""
    for container in ((template or {}).get("spec") or {}).get("containers") or []:
        command = " ".join([*(container.get("command") or []), *(container.get("args") or [])])
        resources = container.get("resources") or {}
        yield from align_facts([(title, f"container {container.get('name')}, image {container.get('image') or '-'}")])
        yield from align_facts([("  runs", command if len(command) <= 100 else f"{command[:99]}…")])
        yield from align_facts(
            [("  requests", join_pairs(resources.get("requests"))), ("  limits", join_pairs(resources.get("limits")))]
        )


def conditions(obj: JSONObject, now: datetime) -> list[str]:
    """Return the conditions of an object as a table."""
    items = meta.status(obj).get("conditions") or []
    rows = [
        (
            str(condition.get("type")),
            str(condition.get("status")),
            wording.age(condition.get("lastTransitionTime") or "", now),
            str(condition.get("reason") or ""),
            mask_message(str(condition.get("message") or "")),
        )
        for condition in items
    ]
    if not rows:
        return ["", "Conditions:     none"]
    return ["", "Conditions:", *output.table(("TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"), rows, "  ")]


def _describe_group(view: View, group: Group, now: datetime) -> list[str]:
    leader = group.leader
    head = align_facts(
        [
            ("Group", f"{view.name}/{group.name}"),
            ("Namespace", view.namespace),
            ("Leader", leader.pod if leader else ""),
            ("Created", format_time(leader.created, now) if leader else ""),
            ("Revision", group.revision),
            ("Ready", f"{group.ready_ranks} of {wording.format_count(len(group.ranks), 'rank')}"),
            ("Recreations", recreations.sentence(group.recreations, now) if group.recreations else ""),
            ("Restarts in place", recreations.in_place(group, now)),
        ]
    )
    return [*head, "", "Ranks:", *(f"  {line}" for line in output.groups([group], now, wide=True))]


def _describe_rank(view: View, rank: Rank, now: datetime) -> list[str]:
    pod = rank.object or {}
    head = align_facts(
        [
            ("Rank", f"{view.name}/{rank.place}"),
            ("Namespace", view.namespace),
            ("Pod", rank.pod),
            ("State", wording.state(rank) + (", ready" if rank.is_ready else "")),
            ("Why", wording.reason(rank)),
            ("Created", format_time(rank.created, now)),
            ("Node", rank.node),
            ("Address", rank.address),
            ("Revision", groupname.revision_key(pod)),
            ("Scheduler", str(meta.spec(pod).get("schedulerName") or "") if pod else ""),
        ]
    )
    return [*head, *_describe_containers(pod, now), *(conditions(pod, now) if pod else [])]


def _describe_containers(pod: JSONObject, now: datetime) -> Iterator[str]:
    status_lists = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    listed = [status for key in status_lists for status in meta.status(pod).get(key) or []]
    statuses = {status.get("name"): status for status in listed}
    for kind, container in _declared_containers(pod):
        status = statuses.get(container["name"]) or {}
        before = (status.get("lastState") or {}).get("terminated") or {}
        yield ""
        yield from align_facts(
            [
                (kind, container["name"]),
                ("  image", str(container.get("image") or "")),
                ("  state", _container_state(status.get("state") or {}, now)),
                ("  restarts", str(status.get("restartCount", 0))),
                ("  previous run", outcome.describe_exit(before) if "exitCode" in before else ""),
                ("  requests", join_pairs((container.get("resources") or {}).get("requests"))),
                ("  limits", join_pairs((container.get("resources") or {}).get("limits"))),
            ]
        )


def _declared_containers(pod: JSONObject) -> Iterator[tuple[str, JSONObject]]:
    """Yield the kind and spec of each container of a pod, in start order."""
    spec = meta.spec(pod) if pod else {}
    for container in spec.get("initContainers") or []:
        yield "Sidecar" if container.get("restartPolicy") == "Always" else "Init", container
    yield from (("Container", container) for container in spec.get("containers") or [])
    yield from (("Ephemeral", container) for container in spec.get("ephemeralContainers") or [])


def _container_state(state: JSONObject, now: datetime) -> str:
    if "running" in state:
        return f"running for {wording.age(state['running'].get('startedAt') or '', now) or '?'}"
    if "terminated" in state and "exitCode" in state["terminated"]:
        return f"exited with {outcome.describe_exit(state['terminated'])}"
    waiting = state.get("waiting") or {}
    return f"waiting: {': '.join(filter(None, [waiting.get('reason'), mask_message(waiting.get('message') or '')])) or 'not started'}"


def log_lines(texts: Sequence[str]) -> list[str]:
    """Return the last lines of failed containers."""
    if not texts:
        return []
    return ["", "Logs:", *(f"  {line}" for text in texts for line in text.splitlines())]


def event_lines(happened: Sequence[EventValue] | None, hint: str, now: datetime) -> list[str]:
    """Return the latest events and the number of earlier events. `hint` is the command that shows all events."""
    if happened is None:
        return ["", "Events:         unknown, because you are not permitted to list events"]
    if not happened:
        return ["", "Events:         none"]
    earlier = len(happened) - RECENT
    more = [f"  … and {wording.format_count(earlier, 'earlier event')}: {hint}"] if earlier > 0 else []
    return ["", "Events:", *more, *eventlines.event_table(happened[-RECENT:], now, "  ")]


def format_time(created: str, now: datetime) -> str:
    """Return the age and the creation time of an object."""
    return f"{wording.age(created, now)} ago ({created})" if created else ""


def join_pairs(values: JSONObject | None) -> str:
    """Return names and values in one line."""
    return ", ".join(f"{key}={value}" for key, value in (values or {}).items())


ROLES = ("ROLE", "READY", "DESIRED", "UPDATED", "SIZE", "SCALING", "ROLLOUT", "IMAGES")
PARTS = ("LEADERWORKERSET", "SLICE", "ROLE", "REVISION", "READY", "DESIRED", "WHY")
REVISIONS = ("REVISION", "LEADERWORKERSETS", "READY", "DESIRED")


def _describe_disaggregatedset(view: SetView, now: datetime) -> list[str]:
    """Return the fields of a DisaggregatedSet."""
    policy = meta.spec(view.object).get("placementPolicy") or {}
    head = align_facts(
        [
            ("Name", view.name),
            ("Namespace", view.namespace),
            ("Created", format_time(view.created, now)),
            ("Labels", join_pairs(meta.labels(view.object))),
            ("Slices", str(meta.spec(view.object).get("slices", 1))),
            ("Groups", f"{view.desired} desired, {view.ready} ready, {view.updated} updated"),
            ("Rollout", view.rollout),
            ("Placement", " ".join(str(policy[name]) for name in ("type", "topology") if policy.get(name))),
        ]
    )
    roles = [_role_row(view, role) for role in list(meta.spec(view.object).get("roles") or [])]
    return [
        *head,
        "",
        "Roles:",
        *output.table(ROLES, roles, "  "),
        *_revisions(view),
        *_parts_table(view),
        *conditions(view.object, now),
    ]


def _role_row(view: SetView, role: JSONObject) -> tuple[str, ...]:
    name, spec = str(role.get("name")), role.get("spec") or {}
    count = next(role_count for role_count in view.roles if role_count.name == name)
    template = spec.get("leaderWorkerTemplate") or {}
    return (
        name,
        str(count.ready),
        str(count.desired),
        str(count.updated),
        str(template.get("size", 1)),
        str((role.get("scaling") or {}).get("mode") or "Static"),
        specfields.rollout(spec) or "-",
        ", ".join(_images(template)) or "-",
    )


def _images(template: JSONObject) -> list[str]:
    images = [
        str(container.get("image") or "-")
        for field in ("leaderTemplate", "workerTemplate")
        for container in ((template.get(field) or {}).get("spec") or {}).get("containers") or []
    ]
    return list(dict.fromkeys(images))


def _revisions(view: SetView) -> list[str]:
    """Return a line for each revision if there are several revisions, because a rollout is in progress."""
    revisions = dict.fromkeys(part.set_revision for part in view.parts)
    if len(revisions) < 2:
        return []
    rows = [
        _revision_row(revision, [part for part in view.parts if part.set_revision == revision])
        for revision in revisions
    ]
    return ["", "Revisions:", *output.table(REVISIONS, rows, "  ")]


def _revision_row(name: str, parts: Sequence[View]) -> tuple[str, ...]:
    ready, desired = sum(part.ready for part in parts), sum(part.desired for part in parts)
    return name, str(len(parts)), str(ready), str(desired)


def _parts_table(view: SetView) -> list[str]:
    if not view.parts:
        return ["", "LeaderWorkerSets: none yet"]
    rows = [
        (
            part.name,
            part.slice,
            part.role,
            part.set_revision,
            str(part.ready),
            str(part.desired),
            reasons(part).removeprefix("; "),
        )
        for part in view.parts
    ]
    title = f"LeaderWorkerSets: {format_count(len(view.parts), 'set')} (use `lws describe NAME` for details)"
    return ["", title, *output.table(PARTS, rows, "  ")]
