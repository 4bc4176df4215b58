"""Determines the sets that a command shows, their format, and their explanations."""

from collections.abc import Sequence

import click
from msgspec import Struct

from kuberuntime.objects import meta
from leaderworkerset.api.disaggregatedset import SET_NAME
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.views import tables
from lwsctl.model.cluster import Cluster, build_cluster
from lwsctl.model.leaderworkerset import View
from lwsctl.observation.lists import Lists, with_evidence
from lwsctl.views.selection import Selection, narrow, unready_view

QUOTED = 3
"""The maximum number of sets whose logs are read, so that tables with hundreds of failed sets are fast."""


class GetRequest(Struct, frozen=True):
    """The selected objects and the output format."""

    selections: tuple[Selection, ...]
    form: str | None = None
    everywhere: bool = False
    selector: str = ""
    managed_fields: bool = False
    not_ready: bool = False
    every_rank: bool = False

    def namespace(self, session: Session) -> str:
        """Return the namespace to read, or an empty string for all namespaces."""
        return "" if self.everywhere else session.namespace

    @property
    def shows_ranks(self) -> bool:
        """Return whether each rank is shown in a row, regardless of the number of groups."""
        return self.every_rank or self.not_ready

    @property
    def table(self) -> tables.TableOptions:
        """Return the table options."""
        return tables.TableOptions(
            is_wide=self.form == "wide",
            shows_all_namespaces=self.everywhere,
            shows_every_rank=self.shows_ranks,
            is_chosen=bool(self.selections),
        )


async def observe(session: Session, request: GetRequest, lists: Lists | None = None) -> tuple[Cluster, Cluster]:
    """Read the selected sets. Return the sets without and with the evidence that `lists` reads."""
    plain = await read(session, request)
    views = await with_evidence(lists or Lists(session.client), plain.views, request.namespace(session))
    return plain, plain.with_views(views)


async def read(session: Session, request: GetRequest) -> Cluster:
    """Return the selected sets without evidence. Raise an error if a group or rank does not exist."""
    objects = (
        await find_objects(session, request.selections)
        if request.selections
        else await targets.list_objects(session, request.namespace(session), request.selector)
    )
    views = await targets.read_views(session, objects.leaderworkersets)
    for selection in request.selections:
        for view in (view for view in views if view.name == selection.name):
            targets.require_existing(view, selection)
    return build_cluster(views, objects.sets, request.namespace(session))


async def print_if_empty(session: Session, cluster: Cluster, request: GetRequest) -> None:
    """Print the reason for the empty output on stderr."""
    if not cluster.roots:
        click.echo(await targets.nothing_found(session, request.namespace(session), request.selector), err=True)
    elif request.not_ready and not select_views(cluster.views, request):
        click.echo("All ranks are ready.", err=True)


async def find_objects(session: Session, selections: Sequence[Selection]) -> targets.TargetObjects:
    """Return the named objects, and the LeaderWorkerSets that a named DisaggregatedSet owns."""
    leaderworkersets, sets = [], []
    for selection in selections:
        resource, obj = await targets.find_set(session, selection.name)
        if resource == LEADERWORKERSETS:
            leaderworkersets.append(obj)
            continue
        leaderworkersets += await targets.list_set_parts(session, selection)
        sets.append(obj)
    return targets.TargetObjects(leaderworkersets, sets)


def select_views(views: Sequence[View], request: GetRequest) -> list[View]:
    """Return the views that match a name or a DisaggregatedSet name, or all views without a name."""
    if request.selections:
        views = [
            narrow(view, selection) for selection in request.selections for view in _matching_views(views, selection)
        ]
    return list(filter(None, map(unready_view, views))) if request.not_ready else list(views)


def _matching_views(views: Sequence[View], selection: Selection) -> list[View]:
    """Return the LeaderWorkerSet with this name, or the LeaderWorkerSets of the DisaggregatedSet with this name."""
    own = [view for view in views if view.name == selection.name]
    return own or [view for view in views if meta.labels(view.object).get(SET_NAME) == selection.name]
