"""`lws dashboard`: shows groups, ranks, problems with their causes, rollouts and logs in a browser."""

import asyncio
import webbrowser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects.meta import ObjectKey
from kuberuntime.serving.signals import stop_event
from leaderworkerset.api.resources import DISAGGREGATED_SETS
from lwsctl import __version__
from lwsctl.cli import targets
from lwsctl.cli.cluster import recordings
from lwsctl.cli.cluster.commandrunner import CommandRunner
from lwsctl.cli.cluster.target import Target
from lwsctl.cli.errors import UsageError
from lwsctl.cli.sets.diagnoses import next_step_commands
from lwsctl.cli.shell import completion
from lwsctl.cli.views.terminal import print_text

if TYPE_CHECKING:  # their imports are not needed for `--help`
    from lwsctl.dashboard.livemodel import LiveModel
    from lwsctl.dashboard.pages.header import ClusterIdentity
    from lwsctl.dashboard.webserver import Dashboard

EVERYTHING: Final = "."
"""The value of --export if it has no argument."""


class DashboardRequest(Struct, frozen=True, kw_only=True):
    """The objects to show on the dashboard, and its settings."""

    everywhere: bool
    port: int
    opens_browser: bool
    allows_actions: bool
    listen: str | None


@click.command("dashboard")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Show objects across all namespaces.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port to listen on. Defaults to a free port."
)
@click.option(
    "--browser/--no-browser",
    "opens_browser",
    default=True,
    help="Open the dashboard in a browser. With --no-browser, only the link is printed.",
)
@click.option(
    "--allow-actions",
    "allows_actions",
    is_flag=True,
    help="Allow users to scale, restart and roll back LeaderWorkerSets in the dashboard.",
)
@click.option(
    "--listen",
    metavar="ADDRESS",
    help="Address on which the dashboard is shared with users, who log in with cluster tokens. 0.0.0.0 selects all addresses. By default, the dashboard is not "
    "shared.",
)
@click.option(
    "--export",
    is_flag=False,
    flag_value=EVERYTHING,
    metavar="[LWS|SET]",
    shell_complete=completion.names,
    help="Print a static HTML page about one object, or about all objects, to standard output.",
)
@click.pass_obj
def command(target: Target, /, *, export: str | None, **options: Any) -> None:
    """Open a web dashboard that shows groups, ranks, problems with their causes, rollouts and logs.

    By default, the dashboard is available only on this machine, until you press Ctrl-C. The printed link can be used only
    once. The dashboard uses your credentials, and is read-only unless --allow-actions is set. Before an action is executed,
    the dashboard shows the equivalent command and the result of a dry run.

    With --listen, users log in with their own tokens, which must permit them to read the objects. The dashboard reads the
    objects with your credentials, and executes actions with the token of the user.
    """
    request = DashboardRequest(**options)
    if export is not None and (request.allows_actions or request.port or request.listen):
        raise UsageError("--export cannot be combined with --allow-actions, --port or --listen")
    asyncio.run(_export(target, request, export) if export is not None else _serve(target, request))


async def _export(target: Target, request: DashboardRequest, name: str) -> None:
    from lwsctl.dashboard.address import Address, PageKind
    from lwsctl.dashboard.livemodel import LiveModel, run_model
    from lwsctl.dashboard.pageexport import render_document
    from lwsctl.dashboard.subscriptions import Subscriptions

    async with target.session() as session:
        namespace = "" if request.everywhere else session.namespace
        address = Address(kind=PageKind.NOW)
        if name != EVERYTHING:
            resource, _ = await targets.find_set(session, targets.set_name(name, "dashboard --export"))
            kind = PageKind.WHOLE if resource == DISAGGREGATED_SETS else PageKind.SET
            address, namespace = Address(kind=kind, key=ObjectKey(session.namespace, name)), session.namespace
        model = LiveModel(
            session.client,
            namespace,
            next_step_commands(session),
            read_episodes=recordings.episode_reader(session),
        )
        async with run_model(model, session.keepalive):
            click.echo(render_document(model.snapshot, address, await Subscriptions(model).facts(address)))


async def _serve(target: Target, request: DashboardRequest) -> None:
    from lwsctl.cli import logging
    from lwsctl.dashboard.livemodel import LiveModel
    from lwsctl.dashboard.pages.header import ClusterIdentity
    from lwsctl.dashboard.webserver import serve_local

    async with target.session(outlives=True) as session:
        logging.configure_default(session.keepalive.log_level)
        namespace = "" if request.everywhere else session.namespace

        own = next_step_commands(session)
        # Users of a shared dashboard have separate kubeconfigs.
        commands = own if request.listen is None else replace(own, lws="lws", kubectl="")
        model = LiveModel(session.client, namespace, commands, read_episodes=recordings.episode_reader(session))
        session.on_renewal.append(model.relist)
        about = ClusterIdentity(
            cluster=session.cluster, context=session.context, user=session.user, version=__version__
        )
        if request.listen is not None:
            await _serve_shared(model, target, request, about)
            return
        runner = CommandRunner(target.options()).run if request.allows_actions else None
        async with serve_local(model, runner, request.port, about=about) as served:
            with TemporaryDirectory(prefix="lws-dashboard-") as directory:
                async with stop_event() as stopped:
                    await _announce(served, Path(directory), request)
                    await stopped.wait()


async def _serve_shared(
    model: "LiveModel", target: Target, request: DashboardRequest, about: "ClusterIdentity"
) -> None:
    from kuberuntime.serving.bindaddresses import Address
    from lwsctl.cli.cluster.tokenauth import TokenAuthenticator
    from lwsctl.dashboard.webserver import serve_shared

    host = TokenAuthenticator(target.access(), model.namespace, allows_actions=request.allows_actions)
    where = Address(request.listen or "", request.port)
    async with serve_shared(model, host, where, about) as served, stop_event() as stopped:
        print_text(
            f"The dashboard is listening on {Address(where.host, served.port)}. Users log in with tokens. Press Ctrl-C to stop it."
        )
        await stopped.wait()


async def _announce(served: "Dashboard", directory: Path, request: DashboardRequest) -> None:
    """Print the link to the dashboard, and open it in a browser.

    The browser opens a private file that redirects to the link, because all users of the machine can see command lines.
    """
    print_text(f"The dashboard is available to one browser at {served.link}")
    print_text("Press Ctrl-C to stop it.")
    if not request.opens_browser:
        return
    path = directory / "open.html"
    path.touch(mode=0o600)
    path.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={served.link}"><title>lws</title>')
    if not await asyncio.to_thread(webbrowser.open, path.as_uri()):  # some browsers run in the terminal and exit late
        print_text("No browser was found. Open the link manually.", err=True)
