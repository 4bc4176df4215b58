"""Tests that messages about manifests contain the line of the field, for all forms of API server paths."""

import pytest

from lwsctl.cli.reading import manifests

TEXT = """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  name: web
  annotations:
    leaderworkerset.sigs.k8s.io/exclusive-topology: rack
spec:
  replicas: -1
  leaderWorkerTemplate:
    size: 0
    workerTemplate:
      spec:
        nodeSelector:
        containers:
        - name: a
          image: x
        - name: b
          ports:
          - {containerPort: 80, protocol: TCP}
"""
POD = "spec.leaderWorkerTemplate.workerTemplate.spec"
HEAD = "web.yaml:{}: leaderworkerset/web: "


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("spec.replicas: Invalid value: -1", 8),
        (".spec.replica: field not declared in schema", 7),
        (f"{POD}.containers[1].ports[0].containerPort: Invalid value: 80", 19),
        (f"{POD}.containers[1].image: Required value", 17),
        (f'.{POD}.containers[name="b"].imag: field not declared in schema', 17),
        (f'.{POD}.containers[name="b"].ports[containerPort=80,protocol="TCP"].x: field not declared in schema', 19),
        (f"{POD}.containers[7].image: Required value", 14),
        (f"{POD}.nodeSelector: Required value", 13),
        ("metadata.annotations.leaderworkerset.sigs.k8s.io/exclusive-topology: has no effect", 6),
        ("metadata.annotations[leaderworkerset.sigs.k8s.io/exclusive-topology]: Invalid value", 6),
        ('metadata.annotations["leaderworkerset.sigs.k8s.io/exclusive-topology"]: Invalid value', 6),
        ("cannot unmarshal number into Go struct field ObjectMeta.metadata.annotations of type map", 5),
        ('strict decoding error: unknown field "spec.leaderWorkerTemplate.sise"', 9),
        ("kind: Unsupported value", 2),
        ("kind Gadget is served by nobody", 1),
        ("exceeded quota: pods", 1),
    ],
)
def test_message_about_a_field_has_its_line(message: str, line: int) -> None:
    (document,) = manifests.parse(TEXT, "web.yaml")
    assert document.message(message) == HEAD.format(line) + message


ELEMENTS = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: a
    ports:
    - {containerPort: 80, protocol: TCP}
    - {protocol: TCP}
    - 8000
    - {containerPort: 80}
  - image: x
  - name: a
"""


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ('.spec.containers: associative list with keys has an element that omits key field "name"', 12),
        ('.spec.containers: duplicate entries for key [name="a"]', 13),
        ('.spec.containers[name="a"].ports: duplicate entries for key [containerPort=80,protocol="TCP"]', 11),
        ('spec.containers[0].image: Invalid value: "metadata.name": unknown', 6),
        (
            '.spec.containers[name="a"].ports: associative list with keys has an element that omits key field "containerPort"',
            9,
        ),
        ('.spec.containers[name="a"].ports: 8000 has no keys', 10),
        ('.spec.containers[name="a"].ports: associative list with keys may not have non-map element', 10),
        ('.spec.containers: duplicate entries for key [name="b"]', 5),
        (".spec.containers: must be a list", 5),
    ],
)
def test_message_about_an_element_has_the_line_of_that_element(message: str, line: int) -> None:
    """API servers report only the list."""
    (document,) = manifests.parse(ELEMENTS, "web.yaml")
    assert document.message(message) == f"web.yaml:{line}: pod/web: {message}"


def test_message_about_several_fields_has_each_line() -> None:
    (document,) = manifests.parse(TEXT, "web.yaml")
    assert document.message("is invalid: [spec.replicas: -1, spec.leaderWorkerTemplate.size: 0, spec.replicas: x]") == (
        HEAD.format(8)
        + "is invalid: [spec.replicas: -1, spec.leaderWorkerTemplate.size (line 10): 0, spec.replicas: x]"
    )


def test_unknown_fields_have_lines_and_values_have_none() -> None:
    (document,) = manifests.parse(TEXT, "web.yaml")
    unknown = 'unknown field "spec.replica", unknown field "spec.leaderWorkerTemplate.size"'
    assert document.message(unknown) == HEAD.format(7) + f'{unknown[:-1]} (line 10)"'
    value = 'spec.replicas: Invalid value: "metadata.nam": label not supported: metadata.nam'
    assert document.message(value) == HEAD.format(8) + value


def test_field_of_a_role_follows_the_path_of_the_role() -> None:
    text = "apiVersion: v1\nkind: Sets\nmetadata: {name: a}\nspec:\n  roles:\n  - spec: {}\n  - spec:\n      size: 1\n"
    (document,) = manifests.parse(text, "roles.yaml")
    message = "spec.roles[1].spec: spec.size: Invalid value"
    assert document.message(message) == f"roles.yaml:8: sets/a: {message}"


def test_items_of_a_list_have_their_own_lines() -> None:
    items = ["- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n  spec:\n    x: 1\n"] * 2
    second = manifests.parse("kind: List\napiVersion: v1\nitems:\n" + "".join(items), "list.yaml")[1]
    assert (second.location, second.message("spec.x: bad")) == ("list.yaml:9", "list.yaml:13: pod/a: spec.x: bad")


def test_lines_follow_comments_anchors_and_documents() -> None:
    text = "# first\n---\n# second\na: 1\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: &x\n  y: [1]\nstatus: *x\n"
    (document,) = manifests.parse(text.replace("a: 1", ""), "many.yaml")
    assert document.message("spec.y[0]: bad") == "many.yaml:10: pod/a: spec.y[0]: bad"
    assert document.message("status.y[0]: bad") == "many.yaml:11: pod/a: status.y[0]: bad"


def test_object_without_a_text_keeps_its_place() -> None:
    document = manifests.Document("--nodes auto", 1, {"kind": "Pod", "metadata": {"name": "a"}})
    assert document.message("spec.x: bad") == "--nodes auto:1: pod/a: spec.x: bad"
