"""Tests that random manifests result in documents or one clear error, in limited time and memory.

`SEEDS=100000 pytest packages/lwsctl/tests/fuzz` tries more than `make test` does. A failure names its seed,
and `SEED=…` repeats it.
"""

import json
import os
import resource
import string
import time
from collections.abc import Callable, Iterator
from random import Random

import msgspec
import pytest
from testkit.repository import ROOT

from kuberuntime.manifests import nesting, yamltext
from lwsctl.cli.applying.applier import creates_namespace, defines_kind
from lwsctl.cli.reading import manifests

SEEDS = int(os.environ.get("SEEDS", "250"))
ONLY = os.environ.get("SEED")
SECONDS = 5.0
"""The CPU time for one string of at most `LONGEST` characters."""

LONGEST = 100_000
MEMORY = 512 * 2**20

pytestmark = pytest.mark.slow

SCALARS = (
    "a", "on", "off", "~", "null", "", "1", "-1", "0x1f", "017", "08", "1e3", "1e999", ".nan", "-.inf", "12:30:00",
    "2024-01-01", "9" * 30, "9" * 5000, "=", "<<", "'it''s'", '"\\x07"', '"\\0"', '"\\ud800"', "!!int x", "!!set {a}",
    "!!binary YQ==", "!!python/object:os.system []", "! 1", "!mine 1", "|\n  text\n", ">-\n  text\n", "\x1b[2J", "\x00",
    "\ufeff", "\x85", "\u2028", "ü", "😀", "\udcff", "%TAG ! x", "---", "...", "? a", "@", "`", "- -", "{", "]", "\t",
)  # fmt: skip
FIELDS = (
    "apiVersion", "kind", "metadata", "name", "generateName", "namespace", "spec", "items", "names", "labels",
    "annotations", "replicas", "leaderWorkerTemplate", "size", "data", "status",
)  # fmt: skip
KINDS = ("LeaderWorkerSet", "List", "Namespace", "CustomResourceDefinition", "Pod", "ConfigMap")


def seeds() -> Iterator[int]:
    if ONLY is not None:
        yield int(ONLY)
        return
    yield from range(1, SEEDS + 1)


def scalar(source: Random) -> str:
    if source.random() < 0.3:
        return "".join(source.choices(string.printable, k=source.randrange(8)))
    return source.choice(SCALARS)


def flow(source: Random, depth: int) -> str:
    """Write a value in flow style, with anchors and aliases."""
    chance = source.random()
    anchor = source.choice(["", "", "", "&a ", "&b ", "!!map ", "!!seq "])
    if depth <= 0 or chance < 0.4:
        return source.choice(["*a", "*b", anchor + scalar(source), scalar(source)])
    parts = [flow(source, depth - 1) for _ in range(source.randrange(4))]
    if chance < 0.7:
        return f"{anchor}[{', '.join(parts)}]"
    keys = [source.choice([*FIELDS, "<<", scalar(source), "*a ", "[a]"]) for _ in parts]
    return anchor + "{" + ", ".join(f"{key}: {part}" for key, part in zip(keys, parts, strict=True)) + "}"


def manifest(source: Random) -> str:
    """Write an object with unusual field values."""
    documents = []
    for _ in range(source.randrange(1, 4)):
        lines = [
            f"apiVersion: {source.choice(['v1', 'a/v1', '../x', scalar(source)])}",
            f"kind: {source.choice(KINDS)}",
        ]
        lines += [f"{source.choice(FIELDS)}: {flow(source, 3)}" for _ in range(source.randrange(6))]
        name = source.choice(["web", scalar(source)])
        lines.append(source.choice([f"metadata: {{name: {name}}}", f"metadata: {flow(source, 2)}", ""]))
        documents.append("\n".join(lines))
    return "\n---\n".join(documents)


def bomb(source: Random) -> str:
    """Write a short string that expands to a large value."""
    count, levels = source.randrange(2, 12), source.randrange(2, 60)
    opening, closing = source.choice([("[", "]"), ("{<<: [", "]}"), ("{a: [", "]}")])
    lines = [f"a0: &a0 {source.choice(['{x: 1}', '[x]', 'x' * 1000])}"]
    for level in range(1, levels):
        repeated = ",".join([f"*a{level - 1}"] * count)
        lines.append(f"a{level}: &a{level} {opening}{repeated}{closing}")
    return "\n".join(lines)


def tower(source: Random) -> str:
    """Write a string with very deep nesting or many repetitions."""
    piece = source.choice(
        ["[", "{a: ", "- ", "? ", "a:\n ", "%TAG !a! b\n", "--- \n", "&a [", '"', "!!int 1:", "a: |\n", "<<: "]
    )
    return (piece * (LONGEST // len(piece)))[: source.randrange(LONGEST)]


def mutated(source: Random) -> str:
    """Change some characters of an example."""
    text = source.choice(EXAMPLES)
    for _ in range(source.randrange(1, 6)):
        place = source.randrange(len(text) + 1)
        text = (
            text[:place] + source.choice([scalar(source), flow(source, 2), ""]) + text[place + source.randrange(12) :]
        )
    return text


EXAMPLES = [path.read_text() for path in sorted((ROOT / "examples").rglob("*.yaml"))]
WRITERS: tuple[Callable[[Random], str], ...] = (manifest, mutated, manifest, mutated, bomb, tower)


def text_of(seed: int) -> str:
    source = Random(seed)
    return source.choice(WRITERS)(source)[:LONGEST]


def read(text: str) -> None:
    """Process a manifest in the same way as commands before they send it."""
    content = text.encode(errors="surrogateescape")
    try:
        documents = manifests.parse(content, "fuzz.yaml")
    except manifests.ManifestError as error:
        if not str(error).startswith("fuzz.yaml"):
            raise  # the error does not contain the file name
        return
    for document in documents:
        sent = msgspec.json.encode(document.object)
        assert len(sent) < 6 * (len(text) + yamltext.MAX_ALIASED)
        assert nesting.decode(sent) == document.object
        assert document.title
        assert document.location
        defines_kind(documents, document)
        creates_namespace(documents, "default")


def test_every_manifest_yields_documents_or_one_error() -> None:
    assert EXAMPLES
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in seeds():
        started = time.process_time()
        try:
            read(text_of(seed))
        except Exception as error:
            raise AssertionError(f"SEED={seed}: {type(error).__name__}: {error}") from error
        assert time.process_time() - started < SECONDS, f"SEED={seed}"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < MEMORY, f"{grown >> 20} MiB"


def test_json_keeps_its_value_when_parsed_as_yaml() -> None:
    for seed in seeds():
        source = Random(seed)
        odd: list[object] = [1, 1.5, -3, True, None, "on", "1e3", [], {}, "a\nb", "ü😀", "\x7f", "\u2028"]
        value = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, source.choice("abc"): source.choice(odd)}
        text = json.dumps(value, ensure_ascii=source.random() < 0.5)
        # as kubectl does, which omits nulls
        stored = {name: field for name, field in value.items() if field is not None}
        assert manifests.parse(text, "fuzz.json")[0].object == stored, f"SEED={seed}: {text}"
