"""`lws diff`: shows the field changes that would result from applying manifests.

The exit code reports whether there are differences.
"""

from collections.abc import Iterable
from typing import Any, Final

import click

from kuberuntime.errors import KubeError
from lwsctl.cli import errors
from lwsctl.cli.applying import skippedkinds
from lwsctl.cli.applying.applier import DryRunResult
from lwsctl.cli.cluster.target import Target
from lwsctl.cli.errors import CommandError
from lwsctl.cli.reading import manifestoptions
from lwsctl.cli.reading.manifestoptions import manifest_arguments
from lwsctl.cli.reading.manifests import sort_documents
from lwsctl.cli.views import diffs
from lwsctl.cli.views.terminal import print_text

DIFFERENT: Final = 1


class DiffError(CommandError):
    """The exit code if the comparison fails. It differs from the exit code for differences."""

    exit_code = 2


@click.command("diff")
@manifest_arguments
@manifestoptions.skip_unserved(default=False)
@manifestoptions.force_conflicts
@click.pass_obj
def command(target: Target, /, *, force_conflicts: bool, skip_unserved: bool, **options: Any) -> int:
    """Show the differences between the live objects and the result of applying the manifests.

    The result is determined with a dry run on the API server, so no objects are modified.

    Exit codes: 0 no differences were found, 1 differences were found, 2 an error occurred.
    """
    try:
        documents = sort_documents(manifestoptions.collect(options).load())

        trials = target.run(
            lambda session: skippedkinds.dry_run(session, documents, force=force_conflicts, skip=skip_unserved)
        )
    except (CommandError, KubeError, OSError) as error:
        raise DiffError(errors.describe(error)) from error
    lines = list(differences(trials))
    print_text(*lines)
    return DIFFERENT if lines else 0


def differences(trials: Iterable[DryRunResult]) -> Iterable[str]:
    """Yield the lines of the diff, without fields that only the API server sets."""
    for trial in trials:
        title = trial.document.title
        yield from diffs.unified_diff(
            diffs.comparable(trial.before), diffs.comparable(trial.after), (f"live {title}", f"applied {title}")
        )
