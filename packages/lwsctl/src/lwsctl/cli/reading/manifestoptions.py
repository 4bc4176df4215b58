"""Defines the manifest options (`-f`, `-k`, `-R`), which apply, run and delete share."""

import shutil
import subprocess
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click
from msgspec import Struct
from msgspec.structs import replace

from lwsctl.cli.errors import CommandError, UsageError
from lwsctl.cli.reading import manifests
from lwsctl.cli.reading.manifests import Document
from lwsctl.views.document import as_manifest

Command = TypeVar("Command", bound=Callable[..., Any])

OPTIONS: Final = (
    click.option("-f", "--filename", "files", multiple=True, metavar="FILE",
                 help="File, directory or URL that contains the manifests, or - for standard input. May be repeated."),
    click.option("-k", "--kustomize", "kustomizations", multiple=True, metavar="DIR",
                 help="Kustomization directory. Requires kustomize or kubectl. May be repeated."),
    click.option("-R", "--recursive", is_flag=True, help="Process the directories that are specified with -f recursively."),
)  # fmt: skip


def _without_server_fields(document: Document) -> Document:
    """Return a document without server-set fields, so that the output of `lws get -o yaml` can be applied."""
    has_uid = bool((document.object.get("metadata") or {}).get("uid"))
    return replace(document, object=as_manifest(document.object)) if has_uid else document


def skip_unserved(*, default: bool) -> Callable[[Command], Command]:
    """Add the option to skip objects whose kinds are not served and that pods do not require."""
    return click.option(
        "--skip-unserved/--no-skip-unserved",
        default=default,
        show_default=True,
        help="Skip objects whose kinds the cluster does not serve, if pods do not depend on these kinds. Examples are HTTPRoute "
        "and ServiceMonitor.",
    )


force_conflicts: Final = click.option(
    "--force-conflicts",
    is_flag=True,
    help="Predict the result of `lws apply --force-conflicts`, which overwrites conflicting fields of other field "
    "managers.",
)
"""The option of commands that only predict the result of an apply."""


class ManifestOptions(Struct, frozen=True):
    """The values of the manifest options."""

    files: tuple[str, ...]
    kustomizations: tuple[str, ...]
    recursive: bool

    def __str__(self) -> str:
        return ", ".join([*self.files, *self.kustomizations])

    def __bool__(self) -> bool:
        return bool(self.files or self.kustomizations)

    def load(self) -> list[Document]:
        """Read all documents. Raise an error if a document cannot be read."""
        if not self:
            raise UsageError("specify manifests with -f FILE or -k DIR, or use -f - to read standard input")
        documents = manifests.load(self.files, recursive=self.recursive) if self.files else []
        for directory in self.kustomizations:
            batch = manifests.parse(build_kustomization(directory), directory)
            if not batch:
                raise manifests.empty_manifests_error([directory])
            documents += batch
        return [_without_server_fields(document) for document in documents]


def manifest_options(command: Command) -> Command:
    """Add the options to a command. Their values are passed as keyword arguments."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def manifest_arguments(command: Command) -> Command:
    """Add the options, and arguments that are equivalent to `-f`, to a command that has no other arguments."""
    return click.argument("paths", nargs=-1, metavar="[FILE]...")(manifest_options(command))


def collect(options: dict[str, Any]) -> ManifestOptions:
    """Remove the manifest options from a command's keyword arguments, and return them."""
    return ManifestOptions(
        options.pop("files") + options.pop("paths", ()), options.pop("kustomizations"), options.pop("recursive")
    )


BUILDERS: Final = (("kustomize", "build"), ("kubectl", "kustomize"))

PATIENCE: Final = 300.0
"""The time limit in seconds for a kustomization, which may download remote bases."""


def build_kustomization(directory: str) -> bytes:
    """Return the manifests that a kustomization produces."""
    words = next((words for words in BUILDERS if shutil.which(words[0])), None)
    if words is None:
        raise CommandError(
            f"-k {directory}: neither kustomize nor kubectl was found in PATH; install one of them, or specify the built manifests with -f"
        )
    try:
        process = subprocess.run([*words, directory], capture_output=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"-k {directory}: {' '.join(words)} did not complete within {PATIENCE:g} s") from error
    if process.returncode:
        message = process.stderr.decode(errors="replace").strip() or f"it exited with code {process.returncode}"
        raise CommandError(f"-k {directory}: {' '.join(words)}: {message}")
    return process.stdout
