"""`lws plan`: predicts the effects of applying manifests, such as field changes, rollout steps and time.

The API server sets defaults and validates the manifests (dry run). With a snapshot, no server is used. The steps are
calculated with the controller's own code (`rollout.forecast`).
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS
from lwsctl.cli.applying import skippedkinds
from lwsctl.cli.applying.applier import DEFAULT_NAMESPACE, DryRunResult, check_locally, with_namespace
from lwsctl.cli.cluster.target import Target
from lwsctl.cli.errors import CommandError, UsageError
from lwsctl.cli.reading import manifestoptions, manifests
from lwsctl.cli.reading.manifestoptions import manifest_arguments
from lwsctl.cli.reading.manifests import Document, sort_documents
from lwsctl.cli.rollouts import rollouttargets
from lwsctl.cli.views import diffs, output
from lwsctl.cli.views.terminal import print_text
from lwsctl.model.leaderworkerset import View
from lwsctl.rollout import applyforecast, roleforecast, snapshots
from lwsctl.rollout.applyforecast import ApplyForecast
from lwsctl.rollout.roleforecast import RoleForecast


class PlannedChange(Struct, frozen=True):
    """A LeaderWorkerSet in the manifests, its current object, and the changed object."""

    before: View | None
    forecast: ApplyForecast


@click.command("plan")
@manifest_arguments
@manifestoptions.skip_unserved(default=False)
@click.option("--snapshot", metavar="FILE", help="File with saved objects that are used instead of a cluster.")
@click.option(
    "--save-snapshot", metavar="FILE", help="File to which the objects that the prediction is based on are saved."
)
@manifestoptions.force_conflicts
@click.option("-o", "--output", "form", type=click.Choice(["json"]), help="Output format. Defaults to text.")
@click.pass_obj
def command(target: Target, /, *, snapshot: str | None, save_snapshot: str | None, **options: Any) -> None:
    """Predict the effects of applying manifests: the changed fields, the groups updated in each step, and the duration.

    A snapshot is the output of `kubectl get lws,sts,pods -o yaml`, or a file that --save-snapshot created. Objects in the
    cluster are not modified.
    """
    form, force, skip = (options.pop(name) for name in ("form", "force_conflicts", "skip_unserved"))
    documents = sort_documents(manifestoptions.collect(options).load())
    if snapshot and save_snapshot:
        raise UsageError("--snapshot and --save-snapshot cannot be combined")
    others: list[str] = []
    roles: list[RoleForecast] = []
    if snapshot:
        outlooks = plan_offline(documents, snapshot, target.namespace or "")
    else:
        outlooks, roles, others = asyncio.run(plan_online(target, documents, force=force, skip=skip))
    if save_snapshot:
        saved = snapshots.build(outlook.before for outlook in outlooks if outlook.before is not None)
        Path(save_snapshot).write_text(output.as_yaml(saved) + "\n", encoding="utf-8")
    show(outlooks, roles, others, form)


def show(
    outlooks: Sequence[PlannedChange], roles: Sequence[RoleForecast], others: Sequence[str], form: str | None
) -> None:
    """Print the plans, and a line for each object of a different kind."""
    if form:
        plans = [applyforecast.document(outlook.forecast) for outlook in outlooks] + list(
            map(roleforecast.document, roles)
        )
        click.echo(output.as_json({"apiVersion": "lws/v1", "kind": "RolloutPlanList", "items": plans}))
        return
    for outlook in outlooks:
        print_text(*applyforecast.lines(outlook.forecast))
    for foreseen in roles:
        print_text(*roleforecast.lines(foreseen))
    print_text(*others)


async def plan_online(
    target: Target, documents: Sequence[Document], *, force: bool, skip: bool
) -> tuple[list[PlannedChange], list[RoleForecast], list[str]]:
    """Predict the effects based on the objects in the cluster and a dry run of the documents."""
    async with target.session() as session:
        outlooks: list[PlannedChange] = []
        roles: list[RoleForecast] = []
        others: list[str] = []
        for trial in await skippedkinds.dry_run(session, documents, force=force, skip=skip):
            if trial.after.get("kind") == LEADERWORKERSETS.kind:
                before = None if trial.before is None else await rollouttargets.read_view(session, trial.before)
                outlooks.append(PlannedChange(before, forecast_change(trial.document, before, trial.after)))
            elif trial.after.get("kind") == DISAGGREGATED_SETS.kind:
                roles.append(roleforecast.forecast_roles(trial.before, trial.after))
            else:
                others.append(unpredicted_effect(trial))
        return outlooks, roles, others


def plan_offline(documents: Sequence[Document], path: str, namespace: str) -> list[PlannedChange]:
    """Predict the effects based on a snapshot. Objects that are not in the snapshot are considered nonexistent."""
    objects = [document.object for document in manifests.load([path])]
    mine = [document for document in documents if document.object["kind"] == LEADERWORKERSETS.kind]

    def stored(obj: JSONObject) -> JSONObject | None:
        before = _find(objects, obj, namespace)
        return None if before is None else before.object

    check_locally(mine, namespace or DEFAULT_NAMESPACE, stored)
    return [_plan_document_offline(document, objects, namespace) for document in mine]


def _plan_document_offline(document: Document, objects: Sequence[JSONObject], namespace: str) -> PlannedChange:
    before = _find(objects, document.object, namespace)
    place = meta.namespace(before.object) if before else namespace or DEFAULT_NAMESPACE
    after = snapshots.overlay(before.object if before else None, with_namespace(document.object, place))
    return PlannedChange(before, forecast_change(document, before, after))


def _find(objects: Sequence[JSONObject], obj: JSONObject, namespace: str) -> View | None:
    return snapshots.find(objects, meta.name(obj), meta.namespace(obj) or namespace)


def forecast_change(document: Document, before: View | None, after: JSONObject) -> ApplyForecast:
    """Predict one change. If this is not possible, raise an error that contains the document name."""
    try:
        foreseen = applyforecast.forecast_apply(before, after)
    except ValueError as error:
        raise CommandError(document.message(str(error))) from error
    return replace(foreseen, warnings=tuple(map(document.message, foreseen.warnings)))


def unpredicted_effect(trial: DryRunResult) -> str:
    """Return the effect of a document on an object whose rollout is not predicted."""
    if trial.before is None:
        return f"{trial.document.title} would be created"
    is_same = diffs.comparable(trial.before) == diffs.comparable(trial.after)
    return f"{trial.document.title} {'unchanged' if is_same else 'would change'}"
