"""Generates malformed values and objects with invalid types, limits of types, or a single change."""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from kuberuntime.objects.meta import JSON, JSONObject
from localkube.apiserver.model.kind import Schema

TEXTS: Final = (
    "", "a", "A", "a" * 64, "a" * 254, "a/b", "a\x00b", "\x00", "\u202e", "\ud7ff", "\U0001f600", "..", "../etc", " ", "-1", "1e400",
    "9" * 400, "0x10", "NaN", "null", "true", "{}", "[", "$(A)", "$(", "%", "%00", "%ff", "=", ",", "a=b,c", "1Gi", "1e99999999", "-0",
    "2026-01-02T03:04:05Z", "0000-00-00T00:00:00Z", "9999-12-31T23:59:59+23:59", "0001-01-01T00:00:00+14:00", "TCP", "Always", "None",
    "AAEC", "A", "=", "10.0.0.1", "::1", "999.1.1.1", "100%", "-5%", "1000000000000000000000%", ".spec.replicas", "[?(@.a", "a\nb",
    "a.b.c", "example.com/a", "v1", "v" * 300,
)  # fmt: skip
NUMBERS: Final = (
    0, 1, -1, 2, 3, 10, 255, 256, 65535, 65536, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1,
    2**64, -(2**63), -(2**63) - 1, 10**40, 0.5, -0.0, 1.0, 1e300, 5e-324,
)  # fmt: skip


def value(random: Random, depth: int = 2) -> JSON:
    """Return an arbitrary value."""
    match random.randrange(8 if depth else 6):
        case 0:
            return None
        case 1:
            return random.random() < 0.5
        case 2 | 3:
            return random.choice(NUMBERS)
        case 4 | 5:
            return random.choice(TEXTS)
        case 6:
            return [value(random, depth - 1) for _ in range(random.randrange(3))]
    return {random.choice(TEXTS): value(random, depth - 1) for _ in range(random.randrange(3))}


def fitting(random: Random, schema: Schema, depth: int = 4) -> JSON:
    """Return a value for a schema, which usually has the correct type but is not always valid."""
    if random.random() < 0.03:
        return value(random)
    match schema.type:
        case "object":
            return _object(random, schema, depth)
        case "array":
            if schema.items is None:
                return []
            return [fitting(random, schema.items, depth - 1) for _ in range(random.randrange(3) if depth > 0 else 0)]
        case "integer":
            return random.choice(NUMBERS[:-6]) if random.random() < 0.5 else random.randrange(100)
        case "number":
            return random.choice(NUMBERS)
        case "boolean":
            return random.random() < 0.5
        case "int-or-string":
            return random.choice((*NUMBERS[:12], *TEXTS))
        case "string":
            return random.choice(TEXTS)
    return value(random)


def _object(random: Random, schema: Schema, depth: int) -> JSONObject:
    if schema.fields is None:
        if schema.values is None or depth <= 0:
            return {}
        values = schema.values
        return {random.choice(TEXTS): fitting(random, values, depth - 1) for _ in range(random.randrange(3))}
    if depth <= 0 or not schema.fields:
        return {}
    names = random.sample(sorted(schema.fields), random.randrange(min(4, len(schema.fields)) + 1))
    return {name: fitting(random, schema.fields[name], depth - 1) for name in names}


def places(document: JSON, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values in a document except the root."""
    children: Iterator[tuple[Any, JSON]] = iter(())
    if isinstance(document, dict):
        children = iter(document.items())
    elif isinstance(document, list):
        children = iter(enumerate(document))
    for key, child in children:
        yield (*path, key)
        yield from places(child, (*path, key))


def schema_at(schema: Schema | None, path: tuple[Any, ...]) -> Schema | None:
    """Return the schema of the value at a path, if it is known."""
    for key in path:
        if schema is None:
            return None
        schema = schema.items if isinstance(key, int) else (schema.fields or {}).get(key, schema.values)
    return schema


def replaced(document: JSON, path: tuple[Any, ...], wanted: JSON) -> JSON:
    """Return the document with a different value at a path."""
    if not path:
        return wanted
    key, rest = path[0], path[1:]
    if isinstance(document, dict):
        return {**document, key: replaced(document.get(key), rest, wanted)}
    if isinstance(document, list):
        return [replaced(child, rest, wanted) if index == key else child for index, child in enumerate(document)]
    return document


def without(document: JSON, path: tuple[Any, ...]) -> JSON:
    """Return the document without the value at a path."""
    if not path:
        return None
    key, rest = path[0], path[1:]
    if isinstance(document, dict):
        if not rest:
            return {name: child for name, child in document.items() if name != key}
        return {**document, key: without(document[key], rest)}
    if isinstance(document, list):
        if not rest:
            return [child for index, child in enumerate(document) if index != key]
        return [without(child, rest) if index == key else child for index, child in enumerate(document)]
    return document


def bent(random: Random, document: JSON, schema: Schema | None = None) -> JSON:
    """Return the document with one to three changes, which insert unexpected types or invalid values."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        found = list(places(document))
        if not found:
            return value(random)
        path = random.choice(found)
        known = schema_at(schema, path)
        parent = schema_at(schema, path[:-1])
        match random.randrange(6):
            case 0:
                document = without(document, path)
            case 1 | 2 if known is not None:
                document = replaced(document, path, fitting(random, known))
            case 3 | 4 if parent is not None and parent.fields and isinstance(path[-1], str):
                name = random.choice(sorted(parent.fields))
                document = replaced(document, (*path[:-1], name), fitting(random, parent.fields[name]))
            case _:
                document = replaced(document, path, value(random))
    return document


def damaged(random: Random, content: bytes) -> bytes:
    """Return the bytes after a few random deletions, changes, duplications and insertions."""
    for _ in range(random.choice((1, 1, 2, 5))):
        position = random.randrange(len(content) + 1)
        end = min(len(content), position + random.choice((0, 1, 1, 2, 8, 100)))
        put = random.choice(
            (b"", b"\x00", b"\xff", b"\x80", b"{", b"[", b'"', b"}", b",", b"1e999", b"\n", content[position:end] * 2)
        )
        content = content[:position] + put + content[end:]
    return content
