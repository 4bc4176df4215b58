"""Tests the get, apply, edit, delete and wait commands of kubectl."""

import json
import subprocess

import click
from tests.kubernetes.kubectl.conftest import SECONDS, Place
from tests.kubernetes.kubectl.objects import config_map, lws, pod, statefulset

from lwsctl.cli.errors import CommandError
from lwsctl.cli.views.formats import OutputFormat, render_objects


def test_get_prints_tables_and_documents(place: Place) -> None:
    place.apply(pod(), statefulset(), lws())
    place.run("wait", "--for=condition=Ready", "pod/talker", "--timeout=30s")
    assert place.run("get", "pods", "talker").split()[:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert place.run("get", "pods", "-l", "app=talker", "--no-headers").split()[:3] == ["talker", "1/1", "Running"]
    assert "NOMINATED NODE" in place.run("get", "pods", "-o", "wide")
    assert json.loads(place.run("get", "pod", "talker", "-o", "json"))["metadata"]["name"] == "talker"
    assert "kind: Pod" in place.run("get", "pod", "talker", "-o", "yaml")
    assert place.run("get", "pod", "talker", "-o", "jsonpath={.status.phase}") == "Running"
    assert {"statefulset.apps/web", "leaderworkerset.leaderworkerset.x-k8s.io/groups"} <= {
        *place.run("get", "sts,lws", "-o", "name").split()
    }
    assert place.namespace in place.run("get", "pods", "-A")
    assert "No resources found" in place.run("get", "pods", "-l", "app=none")
    assert "DESIRED" in place.run("get", "lws")
    assert place.run("get", "pods", "--field-selector=metadata.name=talker", "-o", "name").strip() == "pod/talker"
    assert "not found" in place.run("get", "pod", "absent", code=1)
    columns = place.run("get", "pods", "talker", "-o", "custom-columns=A:.metadata.name,B:.spec.restartPolicy")
    assert columns.split() == ["A", "B", "talker", "Always"]


def test_get_watches_changes(place: Place) -> None:
    watch = place.start(
        "get", "configmaps", "--watch", "--output-watch-events", "--field-selector=metadata.name=settings"
    )
    place.apply(config_map(a="1"))
    assert watch.stdout is not None
    lines = [watch.stdout.readline() for _ in range(2)]
    watch.terminate()
    watch.communicate()
    assert "EVENT" in lines[0]
    assert lines[1].split()[:2] == ["ADDED", "settings"]


def test_apply_is_idempotent_on_client_and_server(place: Place) -> None:
    assert "configmap/settings created" in place.apply(config_map(a="1", b="1"))
    assert "configmap/settings unchanged" in place.apply(config_map(a="1", b="1"))
    assert "configmap/settings configured" in place.apply(config_map(a="2"))
    assert json.loads(place.run("get", "cm", "settings", "-o", "json"))["data"] == {"a": "2"}
    assert "serverside-applied" in place.apply(lws(), server_side=True)
    assert "serverside-applied" in place.apply(lws(), server_side=True)
    assert place.run("get", "lws", "groups", "-o", "jsonpath={.metadata.generation}") == "1"
    conflict = place.run("apply", "--server-side", "--field-manager=other", "-f", "-", text=json.dumps(lws(5)), code=1)
    assert 'conflict with "kubectl": .spec.replicas' in conflict
    forced = place.run(
        "apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-", text=json.dumps(lws(5))
    )
    assert "serverside-applied" in forced


def test_list_of_objects_is_applied_replaced_and_deleted(place: Place) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [config_map(a="1"), lws()]})
    for command, done in (
        ("create", "created"),
        ("apply", "configured"),
        ("replace", "replaced"),
        ("delete", "deleted"),
    ):
        assert place.run(command, "-f", "-", text=text).count(done) == 2
    place.apply(config_map(a="1"))
    assert "configmap/settings configured" in place.run(
        "apply", "-f", "-", text=place.run("get", "configmaps", "--field-selector=metadata.name=settings", "-o", "yaml")
    )
    unknown = lws() | {"spce": {}}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [unknown]})
    assert 'unknown field "spce"' in place.run("apply", "-f", "-", text=text, code=1)


def test_client_side_apply_migrates_to_the_server(place: Place) -> None:
    place.apply(lws())
    assert "serverside-applied" in place.apply(lws(2), server_side=True)


def test_diff_and_dry_run_write_nothing(place: Place) -> None:
    place.apply(config_map(a="1"))
    assert '+  a: "2"' in place.run("diff", "-f", "-", text=json.dumps(config_map(a="2")), code=1)
    place.run("apply", "--dry-run=server", "-f", "-", text=json.dumps(config_map(a="3")))
    assert place.run("get", "cm", "settings", "-o", "jsonpath={.data.a}") == "1"
    assert 'unknown field "spec.unknown"' in place.run(
        "apply", "-f", "-", text=json.dumps(lws() | {"spec": lws()["spec"] | {"unknown": 1}}), code=1
    )


def test_objects_are_changed_in_place(place: Place) -> None:
    place.apply(lws(), config_map(a="1"))
    assert "scaled" in place.run("scale", "lws/groups", "--replicas=3")
    assert place.run("get", "lws", "groups", "-o", "jsonpath={.spec.replicas}") == "3"
    assert "labeled" in place.run("label", "cm", "settings", "x=y")
    assert "already has a value" in place.run("label", "cm", "settings", "x=z", code=1)
    assert "unlabeled" in place.run("label", "cm", "settings", "x-")
    assert "annotated" in place.run("annotate", "lws", "groups", "x=y")
    for kind, change in (
        ("merge", '{"data":{"a":"2"}}'),
        ("strategic", '{"data":{"b":"2"}}'),
        ("json", '[{"op":"remove","path":"/data/b"}]'),
    ):
        assert "patched" in place.run("patch", "cm", "settings", f"--type={kind}", "-p", change)
    assert json.loads(place.run("get", "cm", "settings", "-o", "json"))["data"] == {"a": "2"}
    edited = place.run("get", "cm", "settings", "-o", "json").replace('"2"', '"9"')
    assert "replaced" in place.run("replace", "-f", "-", text=edited)
    assert "Conflict" in place.run("replace", "-f", "-", text=edited, code=1)


def test_describe_shows_events(place: Place) -> None:
    place.apply(pod(), lws(), statefulset())
    place.run("wait", "--for=condition=Ready", "pod/talker", "--timeout=30s")
    assert "BestEffort" in place.shows("Successfully assigned", "describe", "pod", "talker")
    assert "Leader Worker Template" in place.run("describe", "lws", "groups")
    assert "Pods Status" in place.run("describe", "sts", "web")
    place.shows("Scheduled", "get", "events")
    place.shows("Scheduled", "events", "--for", "pod/talker")


def test_wait_and_rollout_status_end(place: Place) -> None:
    place.apply(statefulset())
    assert "2 new pods" in place.run("rollout", "status", "sts/web", "--timeout=30s") or place.run(
        "rollout", "status", "sts/web"
    )
    assert "met" in place.run("wait", "--for=jsonpath={.status.readyReplicas}=2", "sts/web", "--timeout=30s")
    assert "restarted" in place.run("rollout", "restart", "sts/web")
    place.run("rollout", "status", "sts/web", "--timeout=30s")
    assert "REVISION" in place.run("rollout", "history", "sts/web")
    place.run("delete", "pod", "web-1", "--wait=false")
    assert "timed out" in place.run("wait", "--for=jsonpath={.status.phase}=Odd", "pod/web-0", "--timeout=1s", code=1)


def test_deletion_cascades_as_requested(place: Place) -> None:
    place.apply(statefulset())
    place.run("wait", "--for=jsonpath={.status.readyReplicas}=2", "sts/web", "--timeout=30s")
    assert "deleted" in place.run("delete", "sts", "web", "--cascade=orphan")
    assert place.run("get", "pods", "-o", "name").split() == ["pod/web-0", "pod/web-1"]
    place.apply(statefulset())
    assert "deleted" in place.run("delete", "sts", "web", "--cascade=foreground", "--timeout=30s")
    place.run("wait", "--for=delete", "pods", "--all", "--timeout=30s")
    assert "No resources found" in place.run("get", "pods")
    place.apply(pod())
    assert "deleted" in place.run("delete", "pod", "talker", "--now")
    assert "not found" in place.run("delete", "pod", "talker", code=1)
    assert place.run("delete", "pod", "talker", "--ignore-not-found") == ""


def test_namespace_is_deleted_with_its_contents(place: Place) -> None:
    name = f"{place.namespace}-more"
    assert "created" in place.run("create", "namespace", name)
    place.run("create", "configmap", "settings", "--from-literal=a=b", f"--namespace={name}")
    place.run("create", "secret", "generic", "secret", "--from-literal=a=b", f"--namespace={name}")
    place.run("create", "service", "clusterip", "web", "--clusterip=None", "--tcp=80:8080", f"--namespace={name}")
    assert place.run("get", "secret", "secret", "-o", "jsonpath={.data.a}", f"--namespace={name}") == "Yg=="
    assert "deleted" in place.run("delete", "namespace", name, "--timeout=30s")


TEMPLATES = (
    "{.metadata.labels}", "{.spec.containers[0].command}", "{.spec.containers[*].command[*]}", "{..containerPort}{..image}",
    '{range .spec.containers[*]}{.name}{"\\t"}{.image}{"\\n"}{end}', '{.spec.containers[?(@.name=="main")].image}',
    '{.spec.containers[?(@.name!="main")].image}', "{.spec.containers[0].command[0:2]}|{.spec.containers[0].command[-1]}",
    "{.metadata['name','namespace']}", "{.none.x}", "x {.kind} y", "{.spec.terminationGracePeriodSeconds}", "{$.kind}{@.kind}",
    "{range .spec.containers[0].command[*]}{@}{','}{end}", "{.spec.containers[0].command[7]}", "{.spec[0]}", "{.spec", "{end}",
)  # fmt: skip
COLUMNS = (
    "NAME:.metadata.name,IMAGES:.spec.containers[*].image,NONE:.none",
    "A:metadata.name,B:{.spec.terminationGracePeriodSeconds}",
    "A",
)


def test_output_templates_of_lws_and_kubectl_agree(place: Place) -> None:
    place.apply(pod())
    place.run("wait", "--for=condition=Ready", "pod/talker", "--timeout=30s")
    stored = json.loads(place.run("get", "pod", "talker", "-o", "json"))
    form = OutputFormat()
    for template in (*(f"jsonpath={one}" for one in TEMPLATES), *(f"custom-columns={one}" for one in COLUMNS)):
        result = subprocess.run(
            place.command("get", "pod", "talker", "-o", template),
            capture_output=True, text=True, check=False, env=place.environment, timeout=SECONDS,
        )  # fmt: skip
        try:
            own = render_objects(form.convert(template, None, None), [stored], is_one=True)
        except (CommandError, click.BadParameter):
            own = "refused"
        theirs = result.stdout if result.returncode == 0 else "refused"
        assert _trimmed(own) == _trimmed(theirs), template


def _trimmed(text: str) -> list[str]:
    """Return lines without the spaces that kubectl writes after the last column."""
    return [line.rstrip(" ") for line in text.split("\n")]
