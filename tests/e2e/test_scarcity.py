"""Tests that a cluster reports missing descriptors or disk space, continues to run, and recovers."""

import json
from pathlib import Path

import pytest
from tests.e2e.harness import LWS, SLEEP, LocalCluster, Shell, facts, is_whole, lws, ranks, shell_script

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

FILL = """
directory=$1; shift; lws() { "${words[@]}" "$@"; }; words=("$@")
mount -t tmpfs -o size=40m tmpfs "$directory/state"
lws up small --detach
lws apply --local=small -f "$directory/first.json"
lws apply --local=small -f "$directory/third.json"
lws wait --local=small first
lws wait --local=small third
! cat /dev/zero > "$directory/state/full"
! lws apply --local=small -f "$directory/second.json"
lws get --local=small first
lws delete --local=small third
lws wait --local=small third --for delete --timeout=60
lws logs --local=small first --tail=1
rm "$directory/state/full"
lws apply --local=small -f "$directory/second.json"
lws wait --local=small second --timeout=30
before=$(lws logs --local=small first --tail=1)
until [ "$(lws logs --local=small first --tail=1)" != "$before" ]; do :; done
lws down small --delete
"""


def limited(shell: Shell, limit: int, *words: str) -> None:
    """Run `lws` with this hard limit on open files."""
    shell.run(["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", *LWS, *words])


def test_pods_beyond_the_file_limit_have_a_reason(shell: Shell) -> None:
    limited(shell, 160, "up", "files", "--detach")
    cluster = LocalCluster(shell, "files")
    cluster.apply(lws("many", SLEEP, replicas=10, size=4))
    told = cluster.until("many", lambda view: any("too many open files" in why for why in facts(view, "why").values()))
    assert len(ranks(told)) > 0
    cluster.lws("scale", "many", "--replicas=1")
    cluster.until("many", is_whole)


def test_full_disk_is_reported_and_pods_keep_running(shell: Shell, tmp_path: Path) -> None:
    talker = shell_script("while :; do date +%s%N; sleep 0.05; done", grace=1)
    for name in ("first", "second", "third"):
        (tmp_path / f"{name}.json").write_text(json.dumps(lws(name, talker)))
    (tmp_path / "state").mkdir()
    script = ["unshare", "--user", "--map-root-user", "--mount", "bash", "-euc", FILL, "bash", str(tmp_path), *LWS]
    told = shell.run(script).stderr
    assert "second: Internal error occurred" in told
    assert "database or disk is full. Free disk space" in told


START = """
directory=$1; shift
mount -t tmpfs -o size=$1 tmpfs "$directory/state"; shift
exec "$@" up small --detach
"""


@pytest.mark.parametrize("size", ["4k", "12k", "200k"])
def test_full_disk_at_the_start_is_one_error_message(shell: Shell, tmp_path: Path, size: str) -> None:
    (tmp_path / "state").mkdir()
    script = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "bash",
        "-euc",
        START,
        "bash",
        str(tmp_path),
        size,
        *LWS,
    ]
    told = shell.run(script, code=1).stderr
    assert "error: the cluster did not start (exit code " in told
    assert "database or disk is full" in told or "No space left on device" in told
    assert "Traceback" not in told


REFUSED = 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"'


def test_ranks_resolve_each_other_without_namespaces(shell: Shell) -> None:
    """Tests pods as processes without namespaces, as in an unprivileged container or with AppArmor on Ubuntu."""
    run = ["run", "-f", "examples/allreduce/lws.yaml", "--image", "allreduce=examples/allreduce", "--until", "done"]
    unprivileged = ["setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    limited = ["unshare", "--user", "--map-root-user", "sh", "-c", REFUSED, "sh", *unprivileged]
    ran = shell.run([*limited, *LWS, *run])
    assert "pods are plain processes of this machine" in ran.stderr
    assert ran.stdout.count("all-reduce verified: 3 rounds over 4 ranks") == 8
    assert "rank 3 of 4, host allreduce-1-3, leader allreduce-1.allreduce.default" in ran.stdout
