"""Defines the subcommands of `lws chaos`.

There is one for each fault, `run` and `random` for storms, `list`, and `undo`.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from kuberuntime.manifests import yamltext
from lwsctl.cli import logging, sharedoptions
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import FAILED, CommandError, UsageError
from lwsctl.cli.faultnames import FAULTS, FaultTarget
from lwsctl.cli.storms import report as reports
from lwsctl.cli.storms import storm, stormpage
from lwsctl.cli.storms.storm import Step
from lwsctl.cli.storms.stormrunner import StormRun, request_faults
from lwsctl.cli.views import output
from lwsctl.cli.views.terminal import print_text

LARGEST_FILE: Final = 1 << 20
"""The maximum size of a storm file in bytes."""


def storm_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that all storm commands share."""
    for option in (
        click.option("-o", "--output", "form", type=click.Choice(["json", "html"]), help="Output format of the report. Defaults to text."),
        click.option("--settle", type=sharedoptions.limit, default="1m", show_default=True, metavar="DURATION",
                     help="Maximum time to wait for all ranks to be ready after the last fault."),
        click.option("--probe", metavar="URL", help="Send five requests per second to this URL, and report the responses."),
    ):  # fmt: skip
        command = option(command)
    return command


def one_fault(name: str) -> click.Command:
    """Return the command for a fault."""
    fault = FAULTS[name]

    def run_command(target: Target, /, words: tuple[str, ...] = (), **options: Any) -> int:
        seconds, value = options.pop("lasting", 0.0), options.pop("value", "")
        step = storm.build_step(0.0, name, words, seconds, value)
        return play(target, lambda _: [step], **options)

    command = storm_options(click.pass_obj(run_command))
    if not fault.is_instantaneous:
        command = click.option("--for", "lasting", type=sharedoptions.limit, default=f"{storm.USUAL_SECONDS:g}s",
                               show_default=True, metavar="DURATION", help="Duration of the fault.")(command)  # fmt: skip
    if fault.usual:
        option = "--path" if fault.has_path else "--amount"
        command = click.option(option, "value", default=fault.usual, show_default=True,
                               metavar="DIR" if fault.has_path else fault.amount.value, help=fault.value_help)(command)  # fmt: skip
    if fault.of.argument:
        command = click.argument("words", nargs=-1, metavar=fault.of.argument)(command)
    ranks = (
        "\n\nRANK has the form LWS/GROUP/RANK, such as web/0/1."
        if fault.of in {FaultTarget.RANK, FaultTarget.RANKS}
        else ""
    )
    return click.command(name, help=f"{fault.summary}{ranks}")(command)


kill, stop, starve = one_fault("kill"), one_fault("stop"), one_fault("starve")
partition, lose, throttle, delay = one_fault("partition"), one_fault("lose"), one_fault("throttle"), one_fault("delay")
fill, drain, lose_node = one_fault("fill"), one_fault("drain"), one_fault("lose-node")
apiserver, webhooks, manager = one_fault("apiserver"), one_fault("webhooks"), one_fault("manager")


@click.command("run")
@click.option(
    "-f",
    "--filename",
    "path",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File that contains the sequence of faults.",
)
@storm_options
@click.pass_obj
def run(target: Target, /, path: Path, **options: Any) -> int:
    """Inject a sequence of faults that is defined in a file.

    The file contains a list of `steps`. Each step can have the fields `fault`, `targets`, `at`, `for`, `amount` and `path`.
    """
    steps = storm.parse(_load(path), str(path))
    return play(target, lambda _: steps, **options)


@click.command("random")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of the random number generator. The same seed and the same ranks result in the same faults.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(0.1, 600),
    default=1.0,
    show_default=True,
    metavar="N",
    help="Total duration in minutes.",
)
@storm_options
@click.pass_obj
def random(target: Target, /, seed: int, minutes: float, **options: Any) -> int:
    """Inject random faults into the ranks in a namespace, and into cluster components."""
    return play(target, lambda ranks: storm.draw(seed, minutes * 60, ranks), **options)


@click.command("list")
@click.pass_obj
def listing(target: Target) -> None:
    """List active faults."""

    async def run_command(session: Session) -> None:
        items = (await request_faults(session.client, "GET"))["items"]
        rows = [(fault["kind"], " ".join(fault["targets"]) or "-", f"{fault['secondsLeft']:.0f}s") for fault in items]
        print_text(*(output.table(("FAULT", "TARGETS", "ENDS IN"), rows) if rows else ["There are no active faults."]))

    target.run(run_command)


@click.command("undo")
@click.pass_obj
def undo(target: Target) -> None:
    """Stop all active faults."""

    async def run_command(session: Session) -> None:
        await request_faults(session.client, "DELETE")
        print_text("All faults have stopped.")

    target.run(run_command)


def play(
    target: Target,
    plan: Callable[[Sequence[str]], Sequence[Step]],
    *,
    form: str | None,
    settle: float,
    probe: str | None,
) -> int:
    """Run a storm, and print its report."""

    async def run_command(session: Session) -> int:
        logging.configure_default("error")  # watches are interrupted intentionally
        playing = StormRun(session, lambda text: print_text(text, err=bool(form)))
        try:
            async with playing.watching() as followed, asyncio.TaskGroup() as tasks:
                steps = plan(playing.ranks)
                if not steps:
                    raise CommandError(
                        f"no fault was injected, because namespace {session.namespace} has no ranks or the duration is too short"
                    )
                probing = tasks.create_task(playing.probe(probe)) if probe else None
                await playing.run(steps, settle, followed)
                if probing:
                    probing.cancel()
        finally:
            if playing.report.steps:
                _print(playing.report, form)
        return 0 if playing.report.is_successful else FAILED

    return target.run(run_command)


def _print(report: reports.StormReport, form: str | None) -> None:
    match form:
        case "json":
            click.echo(output.as_json(reports.document(report)))
        case "html":
            click.echo(stormpage.page(report), nl=False)
        case _:
            print_text(*reports.lines(report))


def _load(path: Path) -> Any:
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise UsageError(f"{path} exceeds the size limit of {LARGEST_FILE >> 20} MiB")
    try:
        return yamltext.load(content, unique_keys=True)
    except yamltext.YamlError as error:
        raise UsageError(f"{path}: {error}") from error
