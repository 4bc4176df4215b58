"""`lws scale`: changes the number of groups in a LeaderWorkerSet or in a DisaggregatedSet role."""

from typing import Any, Final

import click
from msgspec import Struct

from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource
from leaderworkerset.api import labels
from leaderworkerset.api.disaggregatedset import ROLE, SET_NAME, has_scaler
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS, ROLE_SCALERS
from leaderworkerset.decisions.rolesteps import scaler_name
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import CommandError, UsageError
from lwsctl.cli.sharedoptions import DRY, dry_run_option, timeout_option
from lwsctl.cli.shell import completion
from lwsctl.cli.views import formats
from lwsctl.cli.views.terminal import print_text
from lwsctl.views.wording import format_count

MOST_REPLICAS: Final = 2**31 - 1
"""The maximum number of groups that the field supports."""


@click.command("scale")
@click.argument("names", nargs=-1, required=True, metavar="LWS|SET...", shell_complete=completion.names)
@click.option(
    "--replicas", type=click.IntRange(0, MOST_REPLICAS), required=True, metavar="N", help="New number of groups."
)
@click.option(
    "--current-replicas",
    type=click.IntRange(min=0),
    metavar="N",
    help="Scale only if the current number of groups is N.",
)
@click.option(
    "--role",
    metavar="NAME",
    help="Name of the role to scale in a DisaggregatedSet. --replicas is the number of groups of this role per slice.",
)
@click.option(
    "--prefer-broken",
    is_flag=True,
    help="Show which groups are deleted, and which of the remaining groups are not ready. This option does not change the order of deletion.",
)
@click.option(
    "--recreate-broken",
    is_flag=True,
    help="After scaling, recreate the remaining groups that are not ready. Implies --prefer-broken.",
)
@timeout_option("10m", "the groups that --recreate-broken recreates")
@dry_run_option("Validate the change on the API server without persisting it.")
@formats.output_option("Output format. The scaled objects are printed instead of messages.")
@click.pass_obj
def command(target: Target, /, names: tuple[str, ...], role: str | None, form: str | None, **options: Any) -> None:
    """Set the number of groups in LeaderWorkerSets, or in a role of DisaggregatedSets.

    If the groups have indexes, the groups with the highest indexes are deleted first, whether they are ready or not. If the
    groups have random keys, unready groups are deleted first.
    """
    request = ScaleRequest(**options)
    if request.prefers_broken and (role is not None or form):
        raise UsageError("--prefer-broken and --recreate-broken cannot be combined with --role or --output")
    set_names = [targets.set_name(name, "scale") for name in names]

    async def run_command(session: Session) -> list[JSONObject]:
        changed: list[JSONObject] = []
        for name in set_names:
            if request.prefers_broken:
                await scale_broken_first(session, name, request)
                continue
            if role is not None:
                scaled = await scale_role(session, name, role, request)
            else:
                scaled = await scale(session, name, request)
            changed.append(scaled.object)
            if not form:
                print_text(result_line(f"{name} {role}" if role else name, scaled.before, request))
        return changed

    changed = target.run(run_command)
    if form:
        click.echo(formats.render_objects(form, changed, is_one=len(changed) == 1), nl=False)


class ScaleRequest(Struct, frozen=True):
    """The desired number of groups, the expected current number or None, and whether this is a dry run.

    `prefer_broken` lists the removed groups. `recreate_broken` recreates remaining unready groups within `timeout`
    seconds.
    """

    replicas: int
    current_replicas: int | None = None
    is_trial: bool = False
    prefer_broken: bool = False
    recreate_broken: bool = False
    timeout: float = 600.0

    @property
    def prefers_broken(self) -> bool:
        """Return whether the output lists the groups that are removed."""
        return self.prefer_broken or self.recreate_broken


class ScaleResult(Struct, frozen=True):
    """The number of groups before a change, and the object after the change.

    In a dry run, it is the expected object.
    """

    before: int
    object: JSONObject


async def scale(session: Session, name: str, request: ScaleRequest) -> ScaleResult:
    """Set the number of groups with a field manager that `lws apply` recognizes."""
    resource, obj = await targets.find_set(session, name)
    if resource == DISAGGREGATED_SETS:
        names = ", ".join(str(role.get("name")) for role in meta.spec(obj).get("roles") or [])
        raise UsageError(f"{name} is a DisaggregatedSet; specify a role with --role NAME ({names})")
    require_standalone(session, obj)
    now = int(meta.spec(obj).get("replicas", 1))
    require_current_replicas(name, now, request.current_replicas)
    key = ObjectKey(session.namespace, name)
    return ScaleResult(now, await _scale_subresource(session.client, LEADERWORKERSETS, key, request))


async def _scale_subresource(client: Client, resource: Resource, key: ObjectKey, request: ScaleRequest) -> JSONObject:
    """Set the number of groups through the `scale` subresource.

    Return the object after the change (in a dry run, the expected object).
    """
    change = {"spec": {"replicas": request.replicas}}
    if request.is_trial:
        return await client.try_patch(resource, key, change, kind="merge", manager=labels.SCALE_MANAGER)
    await client.patch(resource, key, change, kind="merge", subresource="scale", manager=labels.SCALE_MANAGER)
    return await client.get(resource, key)


async def scale_broken_first(session: Session, name: str, request: ScaleRequest) -> None:
    """Scale a LeaderWorkerSet down, and print the removed groups. Recreate unready groups if requested."""
    # Only this part of the command requires informers.
    from lwsctl.cli.rollouts import preferbroken

    scale_down = await preferbroken.forecast_scale_down(session, name, request.replicas)
    scaled = await scale(session, name, request)
    print_text(result_line(name, scaled.before, request))
    print_text(*preferbroken.report(session, name, scale_down, recreates=request.recreate_broken))
    if request.recreate_broken and not request.is_trial:
        print_text(await preferbroken.recreate(session, name, scale_down, request.timeout))


def require_standalone(session: Session, lws: JSONObject) -> None:
    """Raise an error if a DisaggregatedSet controls the number of groups of this LeaderWorkerSet."""
    owner, role = meta.labels(lws).get(SET_NAME), meta.labels(lws).get(ROLE)
    if owner and role and meta.controller_of(lws):
        raise CommandError(
            f"{meta.name(lws)} belongs to DisaggregatedSet {owner}, which would undo the change; use `{session.lws} scale {owner} --role {role} --replicas N`"
        )


def require_current_replicas(name: str, now: int, current: int | None) -> None:
    """Raise an error if the number of groups differs from the expected number."""
    if current is not None and now != current:
        raise CommandError(f"{name} has {format_count(now, 'group')}, not {current}; no changes were made")


async def scale_role(session: Session, name: str, role: str, request: ScaleRequest) -> ScaleResult:
    """Set the number of groups of a role, in the DisaggregatedSet or with the scaler of the role."""
    resource, obj = await targets.find_set(session, name)
    if resource == LEADERWORKERSETS:
        raise UsageError(f"{name} is a LeaderWorkerSet and has no roles; remove --role")
    index, role_object = find_role(obj, role)
    if has_scaler(role_object):
        key = ObjectKey(session.namespace, scaler_name(name, role))
        now = int(meta.spec(await session.client.get(ROLE_SCALERS, key)).get("replicas", 1))
        require_current_replicas(f"{name} {role}", now, request.current_replicas)
        return ScaleResult(now, await _scale_subresource(session.client, ROLE_SCALERS, key, request))
    now = int((role_object.get("spec") or {}).get("replicas", 1))
    require_current_replicas(f"{name} {role}", now, request.current_replicas)
    change: JSON = [
        {"op": "test", "path": f"/spec/roles/{index}/name", "value": role},
        {"op": "add", "path": f"/spec/roles/{index}/spec/replicas", "value": request.replicas},
    ]
    key = ObjectKey(session.namespace, name)
    write = session.client.try_patch if request.is_trial else session.client.patch
    return ScaleResult(now, await write(DISAGGREGATED_SETS, key, change, kind="json", manager=labels.SCALE_MANAGER))


def find_role(obj: JSONObject, role: str) -> tuple[int, JSONObject]:
    """Return a role and its index in the spec. If the role does not exist, the error lists the existing roles."""
    roles = meta.spec(obj).get("roles") or []
    for index, role_object in enumerate(roles):
        if role_object.get("name") == role:
            return index, role_object
    names = ", ".join(str(role_object.get("name")) for role_object in roles)
    raise UsageError(f"{meta.name(obj)} has no role {role!r} (existing: {names})")


def result_line(name: str, before: int, request: ScaleRequest) -> str:
    """Return the line that reports the change.

    >>> result_line("web", 2, ScaleRequest(1)), result_line("web", 1, ScaleRequest(1)), result_line("web", 1, ScaleRequest(2, is_trial=True))
    ('web scaled from 2 to 1 group', 'web already has 1 group', 'web scaled from 1 to 2 groups (dry run)')
    """
    groups = format_count(request.replicas, "group")
    if before == request.replicas:
        return f"{name} already has {groups}"
    return f"{name} scaled from {before} to {groups}{DRY if request.is_trial else ''}"
