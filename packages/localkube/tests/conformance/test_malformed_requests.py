"""Tests that both servers respond identically to malformed bodies, formats, options and patches.

See also `test_misuse.py`.

See also `test_misuse.py`.
"""

from typing import Final

import pytest
from tests.conformance.conftest import CheckSame
from tests.conformance.objects import named, pod
from tests.conformance.test_misuse import outcome
from tests.conformance.transcript import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Session, identified

from kuberuntime.objects.meta import JSON
from kuberuntime.objects.resources import CONFIG_MAPS, PODS

WHOLE: Final = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"a":"1"}}'
PACKED: Final = bytes.fromhex(
    "1f8b0800000000000203ab564a2cc80c4b2d2acecccf53b2522a3354d251cacecc4b01b29df3f3d232d37d130b8042b9a925"
    "89298925894a56d54a7989b9a940e9fcbc54a55a1d25982890503254aaad05001b503d0251000000"
)
"""The same object, compressed with gzip. The value is constant because the header depends on the Python version."""

BODIES: Final = (
    PACKED, b"\xff\xfe", WHOLE.replace(b'"1"', b'"\xff"'), WHOLE.replace(b'"a"', b'"a\xc3"'), WHOLE + b"x", WHOLE + WHOLE, b"\xef\xbb\xbf" + WHOLE,
    b" \n" + WHOLE, WHOLE.replace(b'"1"', b"1"), WHOLE.replace(b'"1"', b"NaN"), WHOLE.replace(b'"1"', b'"\\ud800"'), WHOLE.replace(b'{"a":"1"}', b"5"),
    WHOLE.replace(b'"data"', b'"data":{},"data"'),
)  # fmt: skip
MEDIA: Final = (
    "application/json",
    "application/yaml",
    "text/plain",
    "application/xml",
    "odd",
    "application/json; charset=latin1",
    "application/JSON",
    ";",
)


def test_malformed_bodies_are_refused_alike(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        for index, body in enumerate(BODIES):
            await outcome(session, "POST", session.path(CONFIG_MAPS), body.replace(b"one", b"one-%d" % index))
        for index, media in enumerate(MEDIA):
            body = WHOLE.replace(b"one", b"two-%d" % index)
            await outcome(session, "POST", session.path(CONFIG_MAPS), body, media=media)

    same(sequence)


def test_accepted_formats_are_negotiated_alike(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.create(CONFIG_MAPS, named("one"))
        for accept in (
            ";",
            ";;",
            "",
            ",",
            "*",
            "*/*",
            "application/*",
            "application/json;",
            "application/json;q=0",
            "odd",
            "odd,*/*",
            ";as=Table",
            "application/json;as=Table",
        ):
            await outcome(session, "GET", session.path(CONFIG_MAPS, "one"), accept=accept)
            await outcome(session, "GET", session.path(CONFIG_MAPS), accept=accept)

    same(sequence)


QUERIES: Final = (
    *(("labelSelector", text) for text in ("a=\x00", "=", "a in", "a in (", "a==b==c", "a b", "!", "a=" + "x" * 64, "A/B/c=d", "a in (b,c", "a,,b", "a notin ()", "a>x", "a>1", "_=a")),
    *(("fieldSelector", text) for text in ("=", "a", "metadata.name", "metadata.name=\x00", "metadata.name>a", "odd=1", "metadata.name=a,", "metadata.name=a\\", "metadata.name==a")),
    *(("resourceVersion", text) for text in ("odd", "-1", "1.5", "9" * 30, "0x1", " 1", "\u0663", "+1", "01")),
    *(("limit", text) for text in ("odd", "-1", "1.5", "9" * 30, "+1")),
    *(("continue", text) for text in ("odd", "a", "e30", "bnVsbA", "W10", "\x00", "===")),
    *(("timeoutSeconds", text) for text in ("odd", "-1", "9" * 30)),
    *(("resourceVersionMatch", text) for text in ("odd", "Exact", "NotOlderThan")),
    *(("sendInitialEvents", text) for text in ("odd", "true", "")),
    *(("pretty", text) for text in ("odd", "\x00")),
)  # fmt: skip


def test_malformed_options_of_lists_are_refused_alike(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.create(CONFIG_MAPS, named("one"))
        for option, text in QUERIES:
            await outcome(session, "GET", session.path(CONFIG_MAPS), **{option: text})
        for option, text in QUERIES:
            if option in {"labelSelector", "fieldSelector"}:
                await outcome(session, "DELETE", session.path(CONFIG_MAPS), dryRun="All", **{option: text})

    same(sequence)


def test_malformed_options_of_watches_are_refused_alike(same: CheckSame) -> None:
    refused = (
        ("labelSelector", "="), ("fieldSelector", "="), ("resourceVersion", "odd"), ("resourceVersion", "-1"), ("resourceVersionMatch", "odd"),
        ("resourceVersionMatch", "Exact"), ("sendInitialEvents", "true"), ("timeoutSeconds", "odd"), ("limit", "odd"), ("allowWatchBookmarks", "odd"),
    )  # fmt: skip

    async def sequence(session: Session) -> None:
        for option, text in refused:
            query = {"timeoutSeconds": "1", "watch": "true", option: text}
            await outcome(session, "GET", session.path(CONFIG_MAPS), **query)

    same(sequence)


def test_malformed_options_of_writes_are_refused_alike(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        options = (
            *(("fieldManager", text) for text in ("a" * 129, "\x00", "a\nb", "\u00e9", "")),
            *(("fieldValidation", text) for text in ("odd", "strict", "")),
            *(("dryRun", text) for text in ("odd", "all", "", "true")),
            *(("force", text) for text in ("odd", "true", "")),
            *(
                ("gracePeriodSeconds", text)
                for text in ("odd", "-1", "-", "--1", "1.5", str(2**63), str(2**62), "9" * 5000)
            ),
            *(("propagationPolicy", text) for text in ("odd", "", "background")),
            *(("orphanDependents", text) for text in ("odd", "true")),
        )
        for index, (option, text) in enumerate(options):
            obj = identified(CONFIG_MAPS, named(f"one-{index}"))
            path = session.path(CONFIG_MAPS, f"one-{index}")
            await outcome(session, "POST", session.path(CONFIG_MAPS), obj, **{option: text})
            await outcome(session, "PUT", path, obj, **{option: text})
            for media in (MERGE_PATCH, APPLY_PATCH):
                query = {"fieldManager": "a"} if media == APPLY_PATCH else {}
                await outcome(session, "PATCH", path, obj, media=media, **(query | {option: text}))
            await outcome(session, "DELETE", path, **{option: text})

    same(sequence)


PATCHES: Final[dict[str, tuple[JSON, ...]]] = {
    JSON_PATCH: (
        5, {}, [5], [{}], [{"op": "odd", "path": "/a"}], [{"op": "add"}], [{"op": "add", "path": 5}], [{"op": "add", "path": "a", "value": 1}],
        [{"op": "add", "path": "/data/a"}], [{"op": "remove", "path": "/odd/a"}], [{"op": "test", "path": "/data/a", "value": "2"}],
        [{"op": "move", "path": "/data/b", "from": "/odd"}], [{"op": "copy", "path": "/data/b"}], [{"op": "replace", "path": "", "value": 5}],
        [{"op": "remove", "path": "/metadata"}], [{"op": "remove", "path": "/kind"}], [{"op": "add", "path": "/data/~2", "value": "a"}],
        [{"op": "replace", "path": "/data", "value": 5}], [{"op": "add", "path": "/metadata/finalizers/-", "value": "a/b"}],
    ),
    MERGE_PATCH: (5, [], "x", None, {"data": 5}, {"data": {"a": 5}}, {"metadata": None}, {"metadata": 5}, {"kind": "Pod"}, {"apiVersion": "v2"}, {"metadata": {"name": "b"}}),
    STRATEGIC_PATCH: (
        5, [], "x", None, {"data": 5}, {"data": {"a": 5}}, {"$patch": "odd"}, {"$patch": "replace"}, {"$patch": "delete"}, {"data": {"$patch": "odd"}},
        {"metadata": {"$retainKeys": 5}}, {"metadata": {"$deleteFromPrimitiveList/finalizers": 5}}, {"metadata": {"$setElementOrder/finalizers": 5}},
        {"metadata": {"finalizers": 5}}, {"metadata": {"ownerReferences": [5]}},
    ),
    APPLY_PATCH: (5, [], "x", None, {}, {"kind": "ConfigMap"}, {"apiVersion": "v1", "kind": "ConfigMap", "data": 5}, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": 5}),
}  # fmt: skip


@pytest.mark.parametrize("media", PATCHES)
def test_malformed_patches_are_refused_alike(same: CheckSame, media: str) -> None:
    async def sequence(session: Session) -> None:
        await session.create(CONFIG_MAPS, named("one", data={"a": "1"}))
        path = session.path(CONFIG_MAPS, "one")
        query = {"fieldManager": "a"} if media == APPLY_PATCH else {}
        for change in PATCHES[media]:
            await outcome(session, "PATCH", path, change, media=media, **query)
        for body in (b"", b"{", b"\xff", b"[" * 20):
            await outcome(session, "PATCH", path, body, media=media, **query)
        await outcome(session, "PATCH", path, {}, media="application/json")

    same(sequence)


def test_missing_subresources_and_logs_are_refused_alike(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.create(PODS, pod("one"))
        for name in ("one", "absent"):
            for subresource in ("odd", "scale", "status/odd", "Status", "log/odd"):
                await outcome(session, "GET", session.path(PODS, name, subresource))
            options = (
                ("sinceTime", "odd"), ("sinceTime", ""), ("sinceSeconds", "odd"), ("sinceSeconds", "-1"), ("tailLines", "-1"), ("tailLines", "9" * 30),
                ("limitBytes", "0"), ("container", "odd"), ("follow", "odd"), ("sinceSeconds", str(2**62)),
            )  # fmt: skip
            for option, text in options:
                await outcome(session, "GET", session.path(PODS, name, "log"), **{option: text})

    same(sequence)
