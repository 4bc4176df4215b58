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
@click.option("--cluster/--no-cluster", "checks_cluster", default=True, help="Check the cluster.")
@click.option("--machine/--no-machine", "checks_machine", default=True, help="Check this machine.")
@manifest_options
@click.option("-o", "--output", "form", type=click.Choice(["json"]), help="Output format. Defaults to a list.")
@click.pass_obj
def command(target: Target, /, *, checks_cluster: bool, checks_machine: bool, form: str | None, **options: Any) -> int:
    """Check the installation of a cluster and this machine, and suggest fixes. Exit with code 1 on errors.

    Objects are not modified, because webhooks are checked with a dry run. If manifests are specified, only the
    manifests are checked, without a cluster. The checks cover the schema, admission, circular dependencies between
    ranks, and restart rules that contradict the restart policy.
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
