"""Builds kustomizations (`-k DIR`) with the program `kustomize`, or with kubectl, whichever is installed."""

import shutil
import subprocess
from typing import Final

from leaderworkerset.cli.errors import CommandError

BUILDERS: Final = (("kustomize", "build"), ("kubectl", "kustomize"))

PATIENCE: Final = 300.0
"""The time limit in seconds: a kustomization may download remote bases."""


def build(directory: str) -> bytes:
    """Return the manifests of a kustomization."""
    words = next((words for words in BUILDERS if shutil.which(words[0])), None)
    if words is None:
        raise CommandError(
            f"-k {directory}: neither kustomize nor kubectl is on PATH: install one of them, or build the manifests "
            "elsewhere and give them with -f"
        )
    try:
        done = subprocess.run([*words, directory], capture_output=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"-k {directory}: {' '.join(words)} did not end within {PATIENCE:g} s") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or f"it ended with exit code {done.returncode}"
        raise CommandError(f"-k {directory}: {' '.join(words)}: {said}")
    return done.stdout
