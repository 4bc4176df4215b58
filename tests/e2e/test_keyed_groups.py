"""Tests groups with random keys on the command line. A prefix of the key selects a group."""

import json
import re
from typing import Any

import pytest
import yaml
from tests.e2e.harness import ROOT, Shell, ranks

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

MANIFEST: dict[str, Any] = {
    "apiVersion": "leaderworkerset.x-k8s.io/v1",
    "kind": "LeaderWorkerSet",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "groupIdentity": "Hash",
        "leaderWorkerTemplate": {
            "size": 2,
            "workerTemplate": {
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [
                        {
                            "name": "main",
                            "image": "app:1",
                            "command": ["sh", "-c", "echo at $LWS_LEADER_ADDRESS; exec sleep infinity"],
                        }
                    ],
                }
            },
        },
    },
}


def groups(shell: Shell, name: str = "web") -> list[str]:
    """Return the keys of groups in which all ranks are ready."""
    (shown,) = json.loads(shell.lws("get", "--local", name, "-o", "view").stdout)["items"]
    assert all(rank["ready"] for rank in ranks(shown).values())
    return [str(group["group"]) for group in shown["groups"]]


def test_group_is_addressed_by_its_random_key(shell: Shell) -> None:
    shell.lws("up", "--detach")
    shell.lws("apply", "--local", "-f", "-", text=json.dumps(MANIFEST))
    shell.lws("wait", "--local", "web")
    first, second = groups(shell)
    assert f"{first}/1 at web-{first}.web.default" in shell.lws("logs", "--local", f"web/{first}").stdout
    assert shell.lws("logs", "--local", "web", "--group", second).stdout.count("at web-") == 2
    assert shell.lws("exec", "--local", f"web/{first}/1", "--", "hostname").stdout.strip() == f"web-{first}-1"
    assert f"group {second}" in shell.lws("tree", "--local", "web").stdout
    assert f"statefulset/web-{first}" in shell.lws("events", "--local", f"web/{first}").stdout
    assert f"web/{first}" in shell.lws("describe", "--local", f"web/{first}").stdout

    shell.lws("restart", "--local", f"web/{first}")
    after = groups(shell)
    assert second in after
    assert first not in after

    assert (
        "cannot be paused, because groups with random keys do not support partitions"
        in shell.lws("rollout", "pause", "--local", "web", code=1).stderr
    )
    shell.lws("rollout", "restart", "--local", "web")
    assert "2 groups updated and ready" in shell.lws("rollout", "status", "--local", "web").stdout
    assert second not in groups(shell)
    shell.lws("rollout", "undo", "--local", "web")
    shell.lws("rollout", "status", "--local", "web")
    third, _ = groups(shell)
    assert third in shell.lws("rollout", "history", "--local", "web").stdout
    shell.lws("scale", "--local", "web", "--replicas", "3")
    shell.lws("wait", "--local", "web")
    assert len(groups(shell)) == 3
    assert "is healthy" in shell.lws("explain", "--local", "web").stdout


def test_migration_to_random_keys_keeps_the_capacity(shell: Shell) -> None:
    """Follow the how-to page about migration to random keys: files, steps, and the output of `lws plan`."""
    page = (ROOT / "docs/how-to/groups-with-random-keys.md").read_text()
    section = page[page.index("## Move from indexes to random keys") :]
    keyed, chat = (
        yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    )
    (steps,) = re.findall(r"^ +```bash\n(.*?)^ +```$", section, re.MULTILINE | re.DOTALL)
    old = keyed | {"metadata": {"name": "web"}, "spec": {**keyed["spec"], "groupIdentity": "Ordinal", "replicas": 2}}
    shell.lws("up", "--detach")
    shell.lws("apply", "--local", "-f", "-", text=json.dumps(old))
    shell.lws("wait", "--local", "web")
    planned = shell.lws("plan", "--local", "-f", "-", text=json.dumps(keyed)).stdout
    assert "keyed" in planned
    assert "web" not in planned
    shell.lws("apply", "--local", "-f", "-", text="\n---\n".join(map(json.dumps, (keyed, chat))))

    for moved in (1, 2):
        exact = steps.replace("keyed --replicas 1", f"keyed --replicas {moved}")
        exact = exact.replace("web --replicas 1", f"web --replicas {2 - moved}")
        for _, verb, *words in map(str.split, exact.strip().splitlines()):
            shell.lws(verb, "--local", *words)
            assert ready_leaders(shell) >= 2
    assert len(groups(shell, "keyed")) == 2
    assert groups(shell) == []
    shell.lws("delete", "--local", "web")


def ready_leaders(shell: Shell) -> int:
    """Return the number of leaders to which the Service on the page routes requests."""
    shown = json.loads(shell.lws("get", "--local", "-o", "view").stdout)["items"]
    return sum(rank["ready"] for item in shown for place, rank in ranks(item).items() if str(place).endswith("/0"))
