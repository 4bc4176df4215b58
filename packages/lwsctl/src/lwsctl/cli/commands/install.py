"""`lws install`: installs the manager in a cluster, or upgrades an installation, including the Go manager.

All objects are applied server-side with one field manager, so the command is idempotent. If the namespace was not
created by `lws`, it is not changed. The installed configuration is only changed if a new one is specified.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
from msgspec.structs import replace

from kuberuntime import timeouts
from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection, select_one
from kuberuntime.manifests import yamltext
from kuberuntime.objects import meta, names, podstate
from kuberuntime.objects.field import aggregate
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import DEPLOYMENTS, PODS
from kuberuntime.texts.masking import mask_message
from leaderworkerset.api import metadata
from leaderworkerset.decisions.installedkinds import (
    Registry,
    check_configuration,
    full_definitions,
    load_configuration,
    managed_kinds,
    opted_in,
    until_webhooks_reached,
)
from leaderworkerset.decisions.managerconfiguration import ConfigurationError, parse_configuration
from leaderworkerset.install import installsettings, rendering
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.install.objects import build_all, incompatible_values
from lwsctl.cli.cluster.target import Target
from lwsctl.cli.errors import CommandError, TimedOutError, UsageError
from lwsctl.cli.installing.installation import Installer, place
from lwsctl.cli.sharedoptions import timeout_option
from lwsctl.cli.views import output, terminal
from lwsctl.cli.views.progress import ProgressLine
from lwsctl.cli.watchwarnings import following

FLAVOURS: Final = ("slim", "full")
POD_FIELDS: Final = ("affinity", "imagePullSecrets", "nodeSelector", "priorityClassName", "resources", "tolerations")
UNPULLABLE: Final = "localhost/"
SELECTOR: Final = ",".join(f"{name}={value}" for name, value in metadata.SELECTOR.items())


@click.command("install")
@click.option("--image", default=installsettings.IMAGE, show_default=True, metavar="NAME", help="Manager image.")
@click.option(
    "--replicas",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    metavar="N",
    help="Number of manager replicas.",
)
@click.option(
    "--config", metavar="FILE", help="Manager configuration file. Defaults to the installed configuration, if any."
)
@click.option("--pod", metavar="FILE", help=f"YAML file with fields of the manager pods: {', '.join(POD_FIELDS)}.")
@click.option(
    "--log-format",
    type=click.Choice(["console", "json"]),
    default="console",
    show_default=True,
    help="Format of the manager logs.",
)
@click.option(
    "--crd",
    "flavour",
    type=click.Choice(FLAVOURS),
    default=FLAVOURS[0],
    show_default=True,
    help="CRD variant. With full, the CRDs contain the field descriptions that `kubectl explain` shows.",
)
@click.option(
    "--dry-run",
    type=click.Choice(["client", "server"]),
    help="Print the objects without installing them. With server, the API server validates the objects.",
)
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["yaml", "json"]),
    help="Output format of the objects. Requires --dry-run.",
)
@click.option(
    "--wait", "waits", is_flag=True, help="Wait until the manager is ready and the API server can reach its webhooks."
)
@timeout_option("2m", "the manager to be ready if --wait is set")
@click.pass_obj
def command(target: Target, /, **options: Any) -> None:
    """Install or upgrade the manager in a cluster. The namespace defaults to lws-system."""
    settings = InstallSettings(
        namespace=place(target),
        image=options["image"],
        replicas=options["replicas"],
        configuration=read_configuration(options["config"]) if options["config"] else installsettings.CONFIGURATION,
        log_format=options["log_format"],
        pod=read_pod(options["pod"]) if options["pod"] else {},
    )
    check_usage(settings, options)
    if settings.image.startswith(UNPULLABLE):
        terminal.print_text(
            f"warning: {settings.image} is not in a registry; load it onto all nodes, or specify a different image with --image",
            err=True,
        )
    if options["dry_run"] == "client" and options["flavour"] == "slim":
        click.echo(render([obj for _, obj in build_all(managed_kinds_for(settings), settings)], options["form"]))
    else:
        asyncio.run(run_installation(target, settings, options))


def check_usage(settings: InstallSettings, options: dict[str, Any]) -> None:
    """Reject contradictory options before a request is sent."""
    if options["form"] and not options["dry_run"]:
        raise UsageError("-o requires --dry-run=client or --dry-run=server")
    if options["waits"] and options["dry_run"]:
        raise UsageError("--wait cannot be combined with --dry-run")
    if not settings.image.strip():
        raise UsageError('--image: Invalid value: "": specify the manager image')
    if failures := names.dns_1123_label(settings.namespace):
        raise UsageError(f'--namespace: Invalid value: "{settings.namespace}": {failures[0]}')


def read_configuration(path: str) -> str:
    """Return the content of a configuration file.

    Check that the manager accepts it and that it fits the installed objects.
    """
    try:
        decoded = load_configuration(path)
    except ConfigurationError as error:
        raise CommandError(f"--config: {error}") from error
    try:
        check_configuration(decoded)
    except ConfigurationError as error:
        raise CommandError(f"--config: {path}: {error}") from error
    if failures := incompatible_values(decoded):
        raise CommandError(f"--config: {path}: {aggregate(failures)}")
    return Path(path).read_text(encoding="utf-8")


def read_pod(path: str) -> JSONObject:
    """Return pod fields for the manager from a file. The API server validates the values."""
    try:
        fields = yamltext.load(Path(path).read_bytes(), unique_keys=True)
    except (OSError, yamltext.YamlError) as error:
        raise CommandError(f"--pod: {path}: {error}") from error
    if not isinstance(fields, dict) or (unknown := sorted(fields.keys() - set(POD_FIELDS))):
        raise CommandError(
            f"--pod: {path}: must be an object that contains only {', '.join(POD_FIELDS)}"
            + (f", not {', '.join(unknown)}" if isinstance(fields, dict) else "")
        )
    return fields


def managed_kinds_for(settings: InstallSettings) -> Registry:
    """Return the kinds that a manager with this configuration serves. They determine its permissions."""
    try:
        decoded = parse_configuration(settings.configuration.encode())
    except ConfigurationError as error:
        raise CommandError(f"manager configuration: {error}") from error
    return managed_kinds(decoded.gang_provider, configured=opted_in(decoded))


async def run_installation(target: Target, settings: InstallSettings, options: dict[str, Any]) -> None:
    """Read the installed objects, validate or apply the new objects, and wait for the rollout."""
    async with target.session() as session:
        # Lines about objects and printed objects use different streams.
        installer = Installer(
            session.client, settings.namespace, partial(terminal.print_text, err=bool(options["form"]))
        )
        await installer.check_operator()
        await installer.check_namespace()
        if not options["config"]:
            installed = await installer.configuration()
            settings = replace(settings, configuration=settings.configuration if installed is None else installed)
        definitions = await full_definitions(session.client) if options["flavour"] == "full" else None
        objects = await installer.without_foreign_namespace(
            build_all(managed_kinds_for(settings), settings, definitions)
        )
        if options["dry_run"] == "client":
            click.echo(render([obj for _, obj in objects], options["form"]))
            return
        checked = await installer.check(objects)
        if options["dry_run"] == "server":
            click.echo(
                render([result.object for result in checked], options["form"], [result.verb for result in checked])
            )
            return
        await installer.apply(objects)
        if options["waits"]:
            key = ObjectKey(settings.namespace, metadata.MANAGER)
            latest = asyncio.get_running_loop().time() + options["timeout"]
            await wait_until_rolled_out(session.client, key, SELECTOR, options["timeout"])
            click.echo(f"deployment/{key.name} rolled out")
            await wait_until_admitted(session.client, settings.namespace, latest)
            click.echo("webhooks are reachable")


def render(objects: Sequence[JSONObject], form: str | None, words: Sequence[str] = ()) -> str:
    """Return objects as YAML documents, as a List, or as names and results."""
    match form:
        case "yaml":
            return rendering.documents(objects).rstrip("\n")
        case "json":
            return output.as_json({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        case _:
            suffixes = [f" {word}" for word in words] or [""] * len(objects)
            return "\n".join(
                f"{obj['kind'].lower()}/{obj['metadata']['name']}{word} (dry run)"
                for obj, word in zip(objects, suffixes, strict=True)
            )


async def wait_until_rolled_out(client: Client, key: ObjectKey, label_selector: str, timeout: float) -> None:
    """Wait until all replicas of a Deployment with these labels use the latest template."""
    deployments = Informer(client, select_one(DEPLOYMENTS, key))
    pods = Informer(client, Selection(PODS, key.namespace, label_selector))
    progress, missing = ProgressLine(), "no response from the API server"

    def is_done() -> bool | None:
        nonlocal missing
        deployment = deployments.store.get(key)
        if deployment is None:
            raise CommandError(f"deployment/{key.name} was deleted before it was rolled out")
        missing = missing_for_rollout(deployment, pods.store.list())
        if missing:
            progress.show(f"deployment/{key.name}: {missing}")
        return None if missing else True

    try:
        async with timeouts.within(timeout), following(deployments, pods) as objects:
            await objects.wait_for(is_done)
    except TimeoutError as error:
        raise TimedOutError(f"deployment/{key.name} was not rolled out within {timeout:g} s: {missing}") from error
    finally:
        progress.clear()


async def wait_until_admitted(client: Client, namespace: str, latest: float) -> None:
    """Wait until the API server can call the webhooks, up to a deadline of the event loop."""
    try:
        await until_webhooks_reached(client, namespace, max(latest - asyncio.get_running_loop().time(), 1.0))
    except TimeoutError as error:
        raise TimedOutError(f"the API server cannot reach the webhooks: {error}") from error


def missing_for_rollout(deployment: JSONObject, pods: Sequence[JSONObject]) -> str:
    """Return the unmet condition of a Deployment and its reason, or an empty string if the rollout is complete.

    >>> missing_for_rollout({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}, [])
    'its controller has not observed the latest spec'
    """
    status, desired = meta.status(deployment), int(meta.spec(deployment).get("replicas", 1))
    if int(status.get("observedGeneration") or 0) < meta.generation(deployment):
        return "its controller has not observed the latest spec"
    updated, available, total = (
        int(status.get(name) or 0) for name in ("updatedReplicas", "availableReplicas", "replicas")
    )
    if updated < desired or available < desired:
        return f"{min(updated, available)} of {desired} new replicas available{_reason(deployment, pods)}"
    return f"{total - desired} old replicas are still running" if total > desired else ""


def _reason(deployment: JSONObject, pods: Sequence[JSONObject]) -> str:
    failure = meta.find_condition(deployment, "ReplicaFailure") or {}
    if failure.get("status") == "True":
        return f"; {mask_message(str(failure.get('message')))}"
    states = (
        (meta.name(pod), podstate.state(pod), podstate.waiting_reason(pod)) for pod in sorted(pods, key=meta.name)
    )
    return next((f"; {name} is {state}: {why}" for name, state, why in states if why), "")
