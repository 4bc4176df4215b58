"""Builds a release in an empty directory (`make release` or `python -m deploy.release DIRECTORY`).

A release has four wheels and their sources, the context of the image's build, the chart, manifests, the operator's
manifests, bundles and catalog, the bill of materials, notes, and the checksums of all files. The same tree gives the
same bytes: all times are the release time in CHANGELOG.md, archives are sorted, and neither git nor a network is used.

Bundles name images by digest once these are pushed (`--operator-image`, `--operand-image` and `--command-image`, as of
`deploy/generate.py`); before that, the bundles are those of the tree, whose images no cluster can pull. A tree with
unreleased changes is refused.
"""

import argparse
import functools
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from deploy import generate
from deploy.packages import archives, changelog, publishing
from deploy.packages.bundle import Publication
from deploy.packages.operatordeployment import OperatorSettings

import leaderworkerset

ROOT: Final = Path(__file__).parents[1]
PROJECTS: Final = ("packages/kuberuntime", "packages/localkube", "packages/leaderworkerset", "packages/lwsctl")
"""The packages, each after its dependencies."""

CHECKSUMS: Final = "SHA256SUMS"
NOTES: Final = "RELEASE_NOTES.txt"
COPIED: Final = {"deploy/manifests.yaml": "manifests.yaml", "deploy/sbom.cdx.json": "sbom.cdx.json"}


def build(
    root: Path, into: Path, settings: OperatorSettings | None = None, publication: Publication | None = None
) -> list[Path]:
    """Build the release of `root` into an empty or new directory. Return its files, with the checksums last."""
    into.mkdir(parents=True, exist_ok=True)
    if names := sorted(path.name for path in into.iterdir()):
        raise SystemExit(f"{into} is not empty: {', '.join(names[:3])}. Empty it, or use a different directory")
    version = leaderworkerset.__version__
    notes, moment = changelog.released((root / "CHANGELOG.md").read_text("utf-8"), version)
    for project in PROJECTS:
        distribute(root / project, into, moment)
    generated = into / "generated"
    for name, (folder, members) in packed(root, version, write_generated(generated, settings, publication)).items():
        (into / name).write_bytes(archives.pack(members, folder, moment))
    shutil.rmtree(generated, ignore_errors=True)
    for source, name in COPIED.items():
        shutil.copyfile(root / source, into / name)
    (into / NOTES).write_text(notes, "utf-8")
    files = sorted(into.iterdir())
    (into / CHECKSUMS).write_text("".join(checksums(files)), "utf-8")
    return [*files, into / CHECKSUMS]


def distribute(project: Path, into: Path, moment: int) -> None:
    """Build the wheel and the source distribution of a project with the tool in its pyproject.toml."""
    words = [sys.executable, "-m", "hatchling", "build", "--directory", str(into.resolve())]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(moment)}
    process = subprocess.run(words, cwd=project, env=environment, capture_output=True, text=True, check=False)
    if process.returncode:
        raise SystemExit(
            f"hatchling in {project} exited with code {process.returncode}:\n{process.stdout}{process.stderr}"
        )


OPTIONAL: Final = ("deploy/in-place", "deploy/recorder", "deploy/maintenance", "deploy/disruption-budgets")
"""The manager permissions that an administrator must grant separately, regardless of the installer."""

APPLIED: Final = {
    "kustomize": ("deploy/manifests.yaml", "deploy/crds", "deploy/kustomize", *OPTIONAL),
    "operator": ("deploy/operator", "deploy/images.txt", *OPTIONAL),
    "monitoring": ("deploy/monitoring", "deploy/neighbours"),
    "bundles": ("deploy/olm",),
}
"""The files that commands on pages apply, by archive.

Each archive has the folders of the repository, so that commands of the pages work in the unpacked folder.
"""


def packed(root: Path, version: str, generated: Mapping[str, Path]) -> dict[str, tuple[str, Mapping[str, Path]]]:
    """Return the archives of a release by name, each with its directory and files.

    `generated` replace files of the tree.
    """
    lines = (root / ".containerignore").read_text("utf-8").splitlines()
    image_paths = [line[1:] for line in lines if line.startswith("!")]
    below = functools.partial(archives.below, root)
    image = f"lws-image-{version}"
    applied: dict[str, tuple[str, Mapping[str, Path]]] = {
        f"lws-{name}-{version}.tar.gz": (f"lws-{version}", replaced(below(*places), generated))
        for name, places in APPLIED.items()
    }
    return applied | {
        f"lws-{version}.tgz": ("lws", archives.below(root / "deploy/helm/lws", ".")),
        f"{image}.tar.gz": (image, below(".containerignore", "deploy/Containerfile", *image_paths)),
    }


def replaced(members: Mapping[str, Path], generated: Mapping[str, Path]) -> dict[str, Path]:
    """Return the archive members, in which generated files of this release replace the files of the tree.

    If bundles were generated, the catalog of the tree is omitted: it names bundles that nobody has pushed.
    """
    is_released = any(name.startswith("deploy/olm/") for name in generated)
    kept = {
        name: path for name, path in members.items() if not (is_released and name.startswith("deploy/olm/catalog/"))
    }
    return kept | {name: path for name, path in generated.items() if name in members}


def write_generated(
    folder: Path, settings: OperatorSettings | None, publication: Publication | None
) -> dict[str, Path]:
    """Write the files that depend on the pushed images or on the release address."""
    publication = publication or Publication()
    if settings is not None:
        generate.release_bundles(folder, settings, (), publication)
    elif publication.runbooks:
        publishing.write(folder, generate.alerting(publication.runbooks))
    return {f"deploy/{name}": path for name, path in archives.below(folder, ".").items()}


def checksums(files: Sequence[Path]) -> Iterator[str]:
    """Yield the lines for `sha256sum --check`."""
    for path in files:
        yield f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the requested release, and print the checksums. Return the exit code."""
    parser = argparse.ArgumentParser(description="Build a release.")
    parser.add_argument("directory", type=Path, help="an empty or new directory")
    for name in ("operator-image", "operand-image", "command-image"):
        parser.add_argument(f"--{name}", metavar="NAME@DIGEST", default="", help="the pushed image with its digest")
    publishing.add_addresses(parser)
    options = parser.parse_args(arguments)
    fragments = [path.name for path in (ROOT / "changelog.d").glob("*.md") if path.name != "README.md"]
    changelog.refuse_unreleased((ROOT / "CHANGELOG.md").read_text("utf-8"), fragments, leaderworkerset.__version__)
    is_by_digest = bool(options.operator_image or options.operand_image)
    settings = (
        OperatorSettings(
            image=options.operator_image, operand_image=options.operand_image, command_image=options.command_image
        )
        if is_by_digest
        else None
    )
    build(ROOT, options.directory, settings, publishing.published(options.repository, options.runbooks))
    print((options.directory / CHECKSUMS).read_text("utf-8"), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
