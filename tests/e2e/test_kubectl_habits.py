"""Tests kubectl-like commands: applying printed objects, dry runs, several names, and a file without -f."""

import json
from pathlib import Path

import pytest
import yaml
from testkit.waiting import until
from tests.e2e.harness import SELDOM, SLEEP, LocalCluster, Shell, is_whole, lws, shell_script

from kuberuntime.objects.meta import JSONObject

GROUP_NAME = "leaderworkerset.leaderworkerset.x-k8s.io"

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]


def test_printed_objects_can_be_applied_again(shell: Shell) -> None:
    shell.lws("up", "habits", "--detach")
    cluster = LocalCluster(shell, "habits")
    cluster.start(lws("first", SLEEP))
    cluster.start(lws("second", SLEEP))

    printed = cluster.lws("get", "first", "-o", "yaml")
    assert cluster.lws("apply", "-f", "-", text=printed) == "leaderworkerset/first unchanged\n"

    tried = cluster.lws("scale", "first", "second", "--replicas=3", "--dry-run=server")
    assert tried == "first scaled from 1 to 3 groups (dry run)\nsecond scaled from 1 to 3 groups (dry run)\n"
    assert cluster.lws("delete", "first", "--dry-run") == "leaderworkerset/first deleted (dry run)\n"
    assert [cluster.view(name)["desired"] for name in ("first", "second")] == [1, 1]
    named = cluster.lws("apply", "-f", "-", "-o", "name", text=printed)
    assert named == "leaderworkerset.leaderworkerset.x-k8s.io/first\n"
    replicas = cluster.lws("apply", "-f", "-", "-o=jsonpath={.spec.replicas}{.metadata.managedFields}", text=printed)
    assert replicas == "1"
    cluster.refused("apply", "-f", "-", "-o=name", "--dry-run", code=2, text=printed)
    cluster.lws("delete", named.strip(), "second")
    assert cluster.lws("apply", "-f", "-", text=printed) == "leaderworkerset/first created\n"


def test_file_argument_needs_no_option(shell: Shell, tmp_path: Path) -> None:
    manifest = tmp_path / "lws.yaml"
    manifest.write_text(json.dumps(lws("brief", shell_script("exit 0"))))
    shell.lws("run", str(manifest), "--until", "done", "--timeout", "60", code=0)


def test_several_sets_are_awaited_and_each_wait_is_explained(cluster: LocalCluster) -> None:
    cluster.apply(labelled("one", "a"), labelled("two", "a"), labelled("three", "b"))
    assert set(cluster.lws("wait", "one", "lws/two").splitlines()) == {"one is ready", "two is ready"}
    assert set(cluster.lws("wait", "-l", "tier=a").splitlines()) == {"one is ready", "two is ready"}
    assert {"one is ready", "two is ready", "three is ready"} <= {*cluster.lws("wait", "--all").splitlines()}
    told = cluster.refused("wait", "one", "two", "--for=replicas=9", "--timeout=5", code=124)
    assert {
        f"{begin}timed out waiting for {name} after 5 s: 1 group ready, not 9"
        for begin, name in (("error: ", "one"), ("", "two"))
    } <= {*told.splitlines()}
    cluster.refused("wait", "one", "--all", code=2)
    assert "No LeaderWorkerSets found" in cluster.refused("wait", "-l", "tier=none")

    lines = cluster.lws("logs", "-l", "app=one").splitlines()
    assert lines == ["0/0 this is one"]
    assert sorted(cluster.lws("logs", "-l", "app in (one, two)").splitlines()) == [
        "one/0/0 this is one",
        "two/0/0 this is two",
    ]
    cluster.lws("delete", "one", "two", "three")


def labelled(name: str, tier: str) -> JSONObject:
    obj = lws(name, shell_script(f"echo this is {name}; sleep 1000", grace=1))
    obj["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"] = {"labels": {"app": name}}
    return obj | {"metadata": {"name": name, "labels": {"tier": tier}}}


def test_output_templates_read_sets_groups_and_nodes(cluster: LocalCluster) -> None:
    cluster.start(lws("read", SLEEP, size=2))
    assert cluster.lws("get", "read", "-o", "jsonpath={.spec.replicas}") == "1"
    pods = cluster.lws("get", "read/0", '-o=jsonpath={range .items[*]}{.metadata.name}{"\\n"}{end}')
    assert pods == "read-0\nread-0-1\n"
    assert cluster.lws("get", "read/0/1", "-o", "jsonpath={.spec.containers[*].image}") == "host"
    columns = cluster.lws("get", "-o", "custom-columns=NAME:.metadata.name,KIND:.kind").splitlines()
    assert columns[0].split() == ["NAME", "KIND"]
    assert ["read", "LeaderWorkerSet"] in [line.split() for line in columns[1:]]
    assert "the template does not contain an expression in braces" in cluster.refused(
        "get", "-o", "jsonpath=.spec.replicas", code=2
    )

    (row,) = cluster.lws("nodes").splitlines()[1:]
    name, status = row.split()[:2]
    assert status == "Ready"
    assert cluster.lws("nodes", "-o", "name") == f"node/{name}\n"
    assert cluster.lws("nodes", name, "-o", "jsonpath={.metadata.name} {.kind}") == f"{name} Node"
    assert "    default/read-0-1: no requests" in cluster.lws("nodes", name).splitlines()
    cluster.lws("delete", "read")


def has_equal_events(cluster: LocalCluster, name: str) -> bool:
    """Return whether all formats print the same events. Formats that are printed later may include a new event."""
    reasons = cluster.lws("events", name, "-o", 'jsonpath={range .items[*]}{.reason}{"\\n"}{end}').splitlines()
    columns = cluster.lws("events", name, "-o", "custom-columns=WHY:.reason").split()
    documents = yaml.safe_load_all(cluster.lws("events", name, "-o", "yaml"))
    return "GroupsProgressing" in reasons and ["WHY", *reasons] == columns == [
        "WHY",
        *(one["reason"] for one in documents),
    ]


def test_changed_objects_are_printed_in_kubectl_formats(cluster: LocalCluster) -> None:
    cluster.start(lws("form", SLEEP))
    tried = cluster.lws("scale", "form", "--replicas=3", "--dry-run=server", "-o", "jsonpath={.spec.replicas}")
    assert (tried, cluster.view("form")["desired"]) == ("3", 1)
    assert cluster.lws("scale", "form", "--replicas=2", "-o", "name") == f"{GROUP_NAME}/form\n"
    assert json.loads(cluster.lws("scale", "form", "--replicas=2", "-o", "json"))["spec"]["replicas"] == 2

    waited = cluster.lws("wait", "form", "--for=jsonpath={.status.readyReplicas}=2", "--timeout=30s")
    assert waited == "form has {.status.readyReplicas}=2\n"
    assert (
        cluster.lws("wait", "form", "--for=jsonpath=.status.readyReplicas", "-o=jsonpath={.kind}") == "LeaderWorkerSet"
    )
    told = cluster.refused("wait", "form", "--for=jsonpath={.spec.replicas}=7", "--timeout=1", code=124)
    assert "error: timed out waiting for form after 1 s: .spec.replicas is 2, not 7" in told.splitlines()
    assert "--for=[x] is invalid" in cluster.refused("wait", "form", "--for=jsonpath={.a[x]}", code=2)

    until(lambda: has_equal_events(cluster, "form"), "the same events in each format", poll=SELDOM)
    assert {line.split("/")[0] for line in cluster.lws("events", "form", "-o=name").splitlines()} == {"event"}
    assert "cannot be combined with --watch" in cluster.refused("events", "form", "-o=name", "-w", code=2)

    assert cluster.lws("delete", "form", "-o", "name", "--dry-run") == f"{GROUP_NAME}/form\n"
    assert cluster.lws("delete", "form", "-o", "name") == f"{GROUP_NAME}/form\n"


def test_commands_of_kubectl_and_kind_are_accepted_or_explained(cluster: LocalCluster) -> None:
    cluster.start(lws("typed", SLEEP, size=2))
    assert f"{GROUP_NAME}/typed" in cluster.lws("get", "lws", "-o=name").splitlines()
    assert cluster.lws("get", "lws", "typed", "-o=name") == f"{GROUP_NAME}/typed\n"
    assert cluster.lws("wait", "lws", "typed", "--for=condition=available=true") == (
        "typed has condition available=true\n"
    )
    assert cluster.lws("scale", "leaderworkersets", "typed", "--replicas=1") == "typed already has 1 group\n"
    assert "rollout complete" in cluster.lws("rollout", "status", "lws", "typed")
    assert cluster.refused("logs", "typed-0-1").endswith("; use typed/0/1 for pod typed-0-1\n")
    assert cluster.refused("exec", "typed-0", "--", "true").endswith("; use typed/0/0 for pod typed-0\n")
    assert f"use `lws --local={cluster.name} nodes` to list nodes" in cluster.refused("get", "nodes")
    for word, said in {"edit": "`lws apply`", "create": "`lws up` to create a cluster", "ps": "`lws get`"}.items():
        assert said in cluster.shell.lws(word, code=2).stderr
    assert cluster.lws("delete", "lws", "typed", "--wait=false") == "leaderworkerset/typed deleted\n"


def test_log_before_a_recreation_is_kept(cluster: LocalCluster, tmp_path: Path) -> None:
    fails_once = "if [ -e /mark/it ]; then sleep 1000; fi; touch /mark/it; echo no such model >&2; exit 3"
    obj = lws("again", shell_script(fails_once, grace=1), size=2, leader=SLEEP)
    pod = obj["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]
    pod["volumes"] = [{"name": "mark", "hostPath": {"path": str(tmp_path)}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "mark", "mountPath": "/mark"}]
    cluster.apply(obj)
    cluster.until("again", lambda view: is_whole(view) and bool(view["groups"][0]["recreations"]))
    assert cluster.lws("logs", "again/0/1", "--previous") == "no such model\n"
    assert cluster.lws("logs", "again", "--previous") == "0/1 no such model\n"
    cluster.lws("delete", "again")


UNMAPPED = "note: image ring is not mapped, so its containers run in the root file system of this machine"


def test_image_mapped_to_nothing_is_reported_immediately(shell: Shell, tmp_path: Path) -> None:
    manifest = tmp_path / "ring.json"
    manifest.write_text(json.dumps(lws("ring", shell_script("exec ./no-such-file", image="ring"))))
    told = shell.lws("run", str(manifest), "--image", f"rin={tmp_path}", "--fail-fast", code=1).stderr
    assert told.splitlines()[:2] == [
        "note: --image rin: no container uses this image (images: ring)",
        f"{UNMAPPED}; use --image ring=DIR",
    ]
    step = "next: if a file is missing, map the image with --image ring=DIR"
    assert any(line.startswith(step) for line in told.splitlines()), told
