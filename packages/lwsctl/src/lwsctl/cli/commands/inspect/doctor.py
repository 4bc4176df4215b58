"""`lws doctor`: checks an installation and this machine, and prints numbered results with fixes."""

import asyncio
from typing import Any

import click

from kuberuntime.clock import SystemClock
from kuberuntime.errors import KubeError
from lwsctl.cli.cluster.target import Target
from lwsctl.cli.doctor import findings, installationchecks, machine, manifestchecks
from lwsctl.cli.doctor.findings import CheckResult, Level
from lwsctl.cli.errors import FAILED, CommandError
from lwsctl.cli.reading import manifestoptions
from lwsctl.cli.reading.manifestoptions import manifest_options
from lwsctl.cli.views import output
from lwsctl.cli.views.terminal import print_text


@click.command("doctor")
@click.option(
    "--cluster/--no-cluster",
    "checks_cluster",
    default=True,
    show_default=True,
    help="Check the installation in the cluster.",
)
@click.option("--machine/--no-machine", "checks_machine", default=True, show_default=True, help="Check this machine.")
@manifest_options
@click.option("-o", "--output", "form", type=click.Choice(["json"]), help="Output format. Defaults to a list.")
@click.pass_obj
def command(target: Target, /, *, checks_cluster: bool, checks_machine: bool, form: str | None, **options: Any) -> int:
    """Check this machine and the installation in a cluster, and suggest fixes. The exit code is 1 if errors are found.

    Webhooks are checked with a dry run, so no objects are modified.

    If you specify manifests, only the manifests are checked, without a cluster. The checks include the schema, admission,
    circular dependencies between ranks, and restart rules that contradict the restart policy.
    """
    sources = manifestoptions.collect(options)
    if sources:
        from lwsctl.cli.doctor.manifestvalidation import validate_manifests

        documents = sources.load()
        objects = [document.object for document in documents]
        results = [
            *validate_manifests(documents),
            *manifestchecks.check_wait_loops(objects),
            *manifestchecks.check_contradictions(objects),
        ]
        return _print(results, form)
    from lwsctl.cli.doctor.checkinputs import observe_machine

    results = asyncio.run(check_cluster(target)) if checks_cluster else []
    if checks_machine:
        results += machine.findings(observe_machine())
    return _print(results, form)


def _print(results: list[CheckResult], form: str | None) -> int:
    if form == "json":
        click.echo(output.as_json(findings.document(results)))
    else:
        print_text(*findings.report_lines(results))
    return 0 if findings.is_healthy(results) else FAILED


async def check_cluster(target: Target) -> list[CheckResult]:
    """Return the results for a cluster. If the cluster is unreachable, this is one of the results."""
    from lwsctl.cli.doctor.checkinputs import observe

    try:
        async with target.session() as session:
            facts = await observe(session)
    except (KubeError, CommandError) as error:
        fix = "select a cluster with --context, --kubeconfig or --local, or start a local cluster with `lws up`"
        return [CheckResult("LWS-D100", Level.ERROR, "server", str(error), fix)]
    return [*installationchecks.findings(facts, SystemClock().now())]
