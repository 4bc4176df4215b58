"""Tests the pages whose commands require kubectl, without the reader's kubeconfig."""

import os
from dataclasses import replace
from pathlib import Path

from tests.controlplane import build
from tests.e2e.harness import make_shell
from tests.e2e.pages import follow


def test_autoscaling_page_addresses_its_own_cluster(tmp_path: Path) -> None:
    """Without the option `--kubeconfig`, kubectl would not find the cluster."""
    plain = make_shell(tmp_path)
    path = f"{plain.environment['PATH']}{os.pathsep}{build.assets(print)}"
    printed = follow(replace(plain, environment={**plain.environment, "PATH": path}), "docs/how-to/autoscaling.md")
    assert "node-0" in printed
    assert printed.count("No resources found in default namespace.") == 2
