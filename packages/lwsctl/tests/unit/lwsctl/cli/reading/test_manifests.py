"""Tests that manifests are read as in kubectl, and that error messages contain the file and the line."""

import json
from pathlib import Path

import pytest

from lwsctl.cli.reading import manifestoptions, manifests

POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n"


def test_documents_have_lines() -> None:
    documents = manifests.parse(POD + "---\n# nothing here\n---\n" + POD.replace("name: a", "name: b"), "two.yaml")
    assert [(document.title, document.location) for document in documents] == [
        ("pod/a", "two.yaml:1"),
        ("pod/b", "two.yaml:8"),
    ]


def test_items_of_a_list_are_documents() -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n"
    assert [document.title for document in manifests.parse(text, "list.yaml")] == ["pod/a"]


def test_items_of_a_typed_list_may_lack_their_kind() -> None:
    text = "apiVersion: lws/v1\nkind: LeaderWorkerSetList\nitems:\n- metadata: {name: a}\n- {kind: Pod, metadata: {name: b}}\n"
    first, second = manifests.parse(text, "a.yaml")
    assert (first.title, first.object["apiVersion"], first.location) == ("leaderworkerset/a", "lws/v1", "a.yaml:4")
    assert (second.title, second.location) == ("pod/b", "a.yaml:5")


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("  metadata: {name: b}", "a.yaml:5: kind: Required value: every object must have kind"),
        ("  kind: 3", "a.yaml:6: kind: Invalid value: 3: must be a string"),
        ("  kind: Pod\n  metadata: {}", "a.yaml:7: metadata.name: Required value: Pod must have a name"),
    ],
)
def test_an_invalid_item_of_a_list_has_its_own_line(item: str, message: str) -> None:
    text = f"apiVersion: v1\nkind: List\nitems:\n- {{apiVersion: v1, kind: Pod, metadata: {{name: a}}}}\n- apiVersion: v1\n{item}\n"
    with pytest.raises(manifests.ManifestError) as caught:
        manifests.parse(text, "a.yaml")
    assert str(caught.value) == message


def test_kustomization_is_not_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: []\n")
    with pytest.raises(manifests.ManifestError, match=f"a kustomization; use -k {tmp_path}"):
        manifests.load([str(tmp_path)])


def test_printed_objects_are_read_without_server_fields() -> None:
    metadata = {"name": "a", "uid": "1", "resourceVersion": "7", "labels": {"x": "y"}}
    owned = {
        "name": "b",
        "ownerReferences": [{"kind": "DisaggregatedSet", "name": "c", "uid": "2", "controller": True}],
    }
    kind = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    items = [{"leaderWorkerSet": kind | {"metadata": one, "status": {}}} for one in (metadata, owned)]
    text = json.dumps({"apiVersion": "lws/v1", "kind": "LeaderWorkerSetViewList", "items": [*items, 5]})
    (document,) = manifests.parse(text, "printed.json")
    assert document.object == kind | {"metadata": {"name": "a", "labels": {"x": "y"}}}


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("2024-01-01", "2024-01-01"),
        ("12:30:00", "12:30:00"),
        ("1e3", 1000.0),
        ("0x1f", 31),
        ("017", 15),
        ("yes", True),
        ("on", True),
        ('"on"', "on"),
        ("1.5", 1.5),
        ("-3", -3),
        ("null", None),
        ("1Gi", "1Gi"),
    ],
)
def test_scalars_have_the_same_types_as_with_kubectl(scalar: str, value: object) -> None:
    (document,) = manifests.parse(f"{POD}values:\n- {scalar}\n", "scalar.yaml")
    assert document.object["values"] == [value]
    assert type(document.object["values"][0]) is type(value)


def test_null_field_is_absent_as_in_kubectl_apply() -> None:
    text = POD + "  annotations:\nspec:\n  containers: [{name: a, env: null, args: [null]}]\n"
    (document,) = manifests.parse(text, "chart.yaml")
    assert document.object["metadata"] == {"name": "a"}
    assert document.object["spec"] == {"containers": [{"name": "a", "args": [None]}]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", "bad.yaml:2: invalid YAML"),
        (f"{POD}---\n\tx: 1\n", "bad.yaml:6: invalid YAML"),
        (f"{POD}kind: Service\n", "bad.yaml:5: invalid YAML: key 'kind' is already defined in line 2"),
        ("- 1\n", "bad.yaml:1: expected an object with apiVersion and kind, found a list"),
        ("kind: Pod\nmetadata: {name: a}\n", "bad.yaml:1: apiVersion: Required value"),
        (f"{POD}---\napiVersion: v1\nkind: Pod\n", "bad.yaml:6: metadata.name: Required value"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: 12}\n",
            "bad.yaml:3: metadata.name: Invalid value: 12: must be a string; add quotes",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {generateName: 12}\n",
            "metadata.generateName: Invalid value: 12: must be",
        ),
        (f"{POD}  namespace: [a]\n", 'metadata.namespace: Invalid value: ["a"]: must be a string'),
        ("apiVersion: v1\nkind: List\nitems: 5\n", "items: Invalid value: must be a list of objects, found a number"),
        ("apiVersion: v1\nkind: List\nitems: [[a]]\n", "expected an object with apiVersion and kind, found a list"),
        (f"{POD}~: 1\n", "bad.yaml:5: invalid YAML: null cannot be a key"),
        (f"{POD}? [a]\n: 1\n", "bad.yaml:5: invalid YAML: a list cannot be a key"),
        (f"{POD}spec: &a [*a]\n", "bad.yaml:5: invalid YAML: alias *a is an alias inside its own anchor"),
        (f"{POD}spec: .nan\n", "bad.yaml:5: invalid YAML: .nan is a number that JSON cannot represent"),
        ("[" * 50_000, "bad.yaml:1: invalid YAML: nested more than 100 levels deep"),
    ],
)
def test_parse_error_names_file_and_line(text: str, message: str) -> None:
    with pytest.raises(manifests.ManifestError) as caught:
        manifests.parse(text, "bad.yaml")
    assert message in str(caught.value)


def test_directory_is_read_in_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(POD.replace("name: a", "name: second"))
    (tmp_path / "a.yml").write_text(POD)
    (tmp_path / "readme.txt").write_text("not a manifest")
    assert [document.title for document in manifests.load([str(tmp_path)])] == ["pod/a", "pod/second"]


@pytest.mark.parametrize("content", [None, ""])
def test_missing_or_empty_file_is_named(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "x.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(manifests.ManifestError, match=r"x\.yaml"):
        manifests.load([str(path)])


def test_bytes_that_are_not_utf8_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"a: \xff")
    with pytest.raises(manifests.ManifestError, match="invalid UTF-8 at byte 3"):
        manifests.load([str(path)])


def test_boolean_and_number_keys_become_strings() -> None:
    (document,) = manifests.parse(f"{POD}data: {{on: 1, 2: b}}\n", "keys.yaml")
    assert document.object["data"] == {"true": 1, "2": "b"}


def test_json_with_escaped_surrogate_pairs_is_read() -> None:
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "note": "\U0001f600\x7f"}
    (document,) = manifests.parse(json.dumps(obj), "emoji.json")
    assert document.object == obj


@pytest.mark.parametrize(
    ("path", "message"), [("a" * 300, "File name too long"), ("/proc/self/mem", "Input/output error")]
)
def test_unreadable_path_is_named(path: str, message: str) -> None:
    with pytest.raises(manifests.ManifestError, match=message):
        manifests.load([path])


def test_object_printed_by_a_server_can_be_applied_again(tmp_path: Path) -> None:
    path = tmp_path / "printed.yaml"
    path.write_text(POD + "  uid: '1'\n  resourceVersion: '7'\nspec: {}\nstatus: {phase: Running}\n")
    (document,) = manifestoptions.ManifestOptions((str(path),), (), recursive=False).load()
    assert document.object == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}
