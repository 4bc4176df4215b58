"""Tests that unused mappings and images without a mapping are reported before the start."""

from typing import Any

from kuberuntime.objects.meta import JSONObject
from lwsctl.cli.rehearsal.imagewarnings import notes


def lws(*containers: JSONObject) -> JSONObject:
    worker = {"spec": {"containers": list(containers)}}
    return {"kind": "LeaderWorkerSet", "spec": {"leaderWorkerTemplate": {"workerTemplate": worker}}}


RING = {"image": "ring:v1", "command": ["python3", "ring.py"]}
UNMAPPED = (
    "note: image ring:v1 is not mapped, so its containers run in the root file system of this machine; "
    "use --image ring:v1=DIR"
)


def test_unused_mapping_note_lists_the_images() -> None:
    unused = "note: --image rin: no container uses this image (images: ring:v1)"
    assert [*notes([lws(RING)], ["rin"], is_typed=True)] == [unused, UNMAPPED]
    assert [*notes([lws(RING)], ["rin"], is_typed=False)] == [UNMAPPED]


def test_mapped_images_need_no_note() -> None:
    others: list[Any] = [{"image": "vllm"}, {"image": "host", "command": ["sleep"]}, {"command": ["sleep"]}, "junk"]
    assert [*notes([lws(RING, *others)], ["ring"], is_typed=True)] == []
    assert [*notes([{"kind": "ConfigMap", "data": {"containers": "none"}}], [], is_typed=True)] == []


def test_note_about_many_images_names_a_few() -> None:
    several = [{"image": f"i{number}", "command": ["run"]} for number in range(7)]
    (note,) = notes([lws(*several)], [], is_typed=True)
    assert note.startswith(
        "note: images i0, i1, i2, i3, i4 and 2 more are not mapped, so their containers run in the root file system "
    )
