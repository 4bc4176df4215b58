"""Tests the command that builds the manager image."""

import os
import subprocess
import sys
from pathlib import Path

from deploy import image

BASE = "registry.example.com/library/python:3.13-slim@sha256:" + "0" * 64


def build(directory: Path, *tools: str) -> "subprocess.CompletedProcess[str]":
    """Run the command with only these tools, each of which prints its arguments."""
    for name in tools:
        (directory / name).write_text('#!/bin/sh\necho "$0" "$@"\n')
        (directory / name).chmod(0o755)
    command = [sys.executable, "deploy/image.py", "--base", BASE, "--tag", "it:1"]
    environment = os.environ | {"PATH": str(directory)}
    return subprocess.run(command, cwd=image.ROOT, env=environment, capture_output=True, text=True, check=False)


def test_image_is_built_by_the_available_tool(tmp_path: Path) -> None:
    done = build(tmp_path, "buildah")
    assert done.returncode == 0
    assert f"{tmp_path}/buildah build --file deploy/Containerfile --tag it:1" in done.stdout
    assert f"BASE_IMAGE={BASE}" in done.stdout


def test_missing_build_tools_are_named(tmp_path: Path) -> None:
    done = build(tmp_path)
    assert done.returncode == 1
    assert done.stderr == "error: podman or buildah not found. Install one of them\n"
