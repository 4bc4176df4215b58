"""Build a release into an empty directory: `make release`, or `python -m deploy.release DIRECTORY`.

Three wheels and their sources, the context of the image's build, the chart, manifests, the operator's manifests, bundles and
catalog, the bill of materials, notes, and the checksums of all. The same tree gives the same bytes: times are that of the release
in CHANGELOG.md, archives are sorted, and nothing is asked of git or of a network.

Bundles name images by digest once these are pushed (`--operator-image` and `--operand-image`, as of `deploy/generate.py`);
before that they are those of the tree, whose images no cluster can pull.
"""

import argparse
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from deploy import generate
from deploy.packages import archives
from deploy.packages.operatordeployment import OperatorSettings

import leaderworkerset

ROOT: Final = Path(__file__).parents[1]
PROJECTS: Final = ("packages/kuberuntime", "packages/localkube", "packages/leaderworkerset")
"""The packages, each after those that it needs."""

CHECKSUMS: Final = "SHA256SUMS"
NOTES: Final = "RELEASE_NOTES.txt"
COPIED: Final = {"deploy/manifests.yaml": "manifests.yaml", "deploy/sbom.cdx.json": "sbom.cdx.json"}
HEADING: Final = re.compile(r"^## (?P<version>\d+\.\d+\.\d+) - (?P<day>\d{4}-\d\d-\d\d)$", re.MULTILINE)
"""What begins the notes of a release in CHANGELOG.md."""


def released(changelog: str, version: str) -> tuple[str, int]:
    """Return the notes of a version and its time, midnight in UTC as seconds since 1970; SystemExit where it has none."""
    for found in HEADING.finditer(changelog):
        if found["version"] == version:
            notes = re.split(r"^## ", changelog[found.end() :], maxsplit=1, flags=re.MULTILINE)[0]
            return notes.strip() + "\n", int(datetime.fromisoformat(found["day"]).replace(tzinfo=UTC).timestamp())
    raise SystemExit(f'CHANGELOG.md has no heading "## {version} - YYYY-MM-DD": write its notes before the release')


def build(root: Path, into: Path, chosen: OperatorSettings | None = None, repository: str = "") -> list[Path]:
    """Build the release of the tree `root` into an empty or new directory; return its files, the checksums last."""
    into.mkdir(parents=True, exist_ok=True)
    if left := sorted(path.name for path in into.iterdir()):
        raise SystemExit(f"{into} is not empty: {', '.join(left[:3])}: empty it, or choose another directory")
    version = leaderworkerset.__version__
    notes, moment = released((root / "CHANGELOG.md").read_text("utf-8"), version)
    for project in PROJECTS:
        distribute(root / project, into, moment)
    for name, (folder, members) in packed(root, version, chosen_bundles(root, into, chosen, repository)).items():
        (into / name).write_bytes(archives.pack(members, folder, moment))
    shutil.rmtree(into / "olm", ignore_errors=True)
    for source, name in COPIED.items():
        shutil.copyfile(root / source, into / name)
    (into / NOTES).write_text(notes, "utf-8")
    files = sorted(into.iterdir())
    (into / CHECKSUMS).write_text("".join(checksums(files)), "utf-8")
    return [*files, into / CHECKSUMS]


def distribute(project: Path, into: Path, moment: int) -> None:
    """Build the wheel and the source distribution of one project with the tool that its pyproject.toml names."""
    words = [sys.executable, "-m", "hatchling", "build", "--directory", str(into.resolve())]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(moment)}
    built = subprocess.run(words, cwd=project, env=environment, capture_output=True, text=True, check=False)
    if built.returncode:
        raise SystemExit(
            f"hatchling in {project} ended with exit code {built.returncode}:\n{built.stdout}{built.stderr}"
        )


def packed(root: Path, version: str, bundles: Mapping[str, Path]) -> dict[str, tuple[str, Mapping[str, Path]]]:
    """Return the archives of a release by name, each with its folder and the files in it."""
    told = (root / ".containerignore").read_text("utf-8").splitlines()
    sent = [line[1:] for line in told if line.startswith("!")]
    below = functools.partial(archives.below, root)
    return {
        f"lws-{version}.tgz": ("lws", archives.below(root / "deploy/helm/lws", ".")),
        f"lws-bundles-{version}.tar.gz": ("olm", bundles),
        f"lws-image-{version}.tar.gz": (
            f"lws-image-{version}",
            below(".containerignore", "deploy/Containerfile", *sent),
        ),
        f"lws-kustomize-{version}.tar.gz": (f"lws-{version}", below("deploy/crds", "deploy/kustomize")),
        f"lws-monitoring-{version}.tar.gz": (f"lws-{version}", below("deploy/monitoring", "deploy/neighbours")),
        f"lws-operator-{version}.tar.gz": (f"lws-{version}", below("deploy/operator")),
    }


def chosen_bundles(root: Path, into: Path, chosen: OperatorSettings | None, repository: str) -> dict[str, Path]:
    """Return the files of bundles and catalog; for chosen images they are written below `into` first."""
    if chosen is None:
        return archives.below(root / "deploy/olm", ".")
    generate.release_bundles(into, chosen, (), repository)
    return archives.below(into / "olm", ".")


def checksums(files: Sequence[Path]) -> Iterator[str]:
    """Yield the lines that `sha256sum --check` reads."""
    for path in files:
        yield f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Build what the arguments say, and print the checksums; return the exit code."""
    parser = argparse.ArgumentParser(description="Build a release.")
    parser.add_argument("directory", type=Path, help="an empty or new directory")
    for name in ("operator-image", "operand-image"):
        parser.add_argument(f"--{name}", metavar="NAME@DIGEST", default="", help="the pushed image, by digest")
    parser.add_argument(
        "--repository", metavar="URL", default="", help="where the sources of the release are published"
    )
    given = parser.parse_args(arguments)
    named = bool(given.operator_image or given.operand_image)
    chosen = OperatorSettings(image=given.operator_image, operand_image=given.operand_image) if named else None
    build(ROOT, given.directory, chosen, given.repository)
    print((given.directory / CHECKSUMS).read_text("utf-8"), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
