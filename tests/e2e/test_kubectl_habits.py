"""What users of kubectl type works: printed objects are applied again, dry runs, several names, a file without -f."""

import json
from pathlib import Path

import pytest
from tests.e2e.harness import SLEEP, Cluster, Shell, lws, shell_script

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]


def test_what_is_printed_can_be_applied_again_and_dry_runs_write_nothing(shell: Shell) -> None:
    shell.lws("up", "habits", "--detach")
    cluster = Cluster(shell, "habits")
    cluster.start(lws("first", SLEEP))
    cluster.start(lws("second", SLEEP))

    printed = cluster.lws("get", "first", "-o", "yaml")
    assert cluster.lws("apply", "-f", "-", text=printed) == "leaderworkerset/first unchanged\n"

    tried = cluster.lws("scale", "first", "second", "--replicas=3", "--dry-run=server")
    assert tried == "first scaled from 1 to 3 groups (dry run)\nsecond scaled from 1 to 3 groups (dry run)\n"
    assert cluster.lws("delete", "first", "--dry-run") == "leaderworkerset/first deleted (dry run)\n"
    assert [cluster.view(name)["desired"] for name in ("first", "second")] == [1, 1]
    cluster.lws("delete", "first", "second")
    assert cluster.lws("apply", "-f", "-", text=printed) == "leaderworkerset/first created\n"


def test_a_file_to_run_needs_no_option(shell: Shell, tmp_path: Path) -> None:
    manifest = tmp_path / "lws.yaml"
    manifest.write_text(json.dumps(lws("brief", shell_script("exit 0"))))
    shell.lws("run", str(manifest), "--until", "done", "--timeout", "60", code=0)
