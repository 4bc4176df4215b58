"""`lws schema`: prints the JSON Schema of the LeaderWorkerSet kinds, for editors."""

from collections.abc import Iterable
from typing import Final

import click

from kuberuntime.objects.meta import JSON, JSONObject
from lwsctl.cli.errors import UsageError


@click.command("schema")
@click.argument("kinds", nargs=-1, metavar="[KIND]...")
def command(kinds: tuple[str, ...]) -> None:
    """Print the JSON Schema of manifests, which editors use to complete and validate YAML. KIND defaults to all kinds.

    The schema is derived from the CRDs of this version, and does not allow unknown fields. The command does not require a
    cluster.
    """
    import msgspec

    from leaderworkerset.api import descriptions
    from leaderworkerset.decisions.installedkinds import MANAGED, operator_crd

    definitions = [*MANAGED.described_definitions(descriptions.OWN_ONLY), operator_crd()]
    by_kind = {definition["spec"]["names"]["kind"]: definition for definition in definitions}
    if unknown := [kind for kind in kinds if kind not in by_kind]:
        raise UsageError(f"unknown kind {unknown[0]!r}; supported kinds: {', '.join(by_kind)}")
    click.echo(msgspec.json.encode(schema(by_kind[kind] for kind in kinds or by_kind)))


DIALECT: Final = "http://json-schema.org/draft-07/schema#"
"""The latest JSON Schema draft that YAML language servers support."""


def schema(definitions: Iterable[JSONObject]) -> JSONObject:
    """Return one schema for files with any of these kinds. Objects of all other kinds are valid.

    An API server drops fields that a CRD does not contain. In this schema they are errors, so that editors mark
    misspelled fields.
    """
    kinds = [_kind(definition["spec"]) for definition in definitions]
    return {"$schema": DIALECT, "title": "Manifests of LeaderWorkerSets", "type": "object", "allOf": kinds}


def _kind(spec: JSONObject) -> JSONObject:
    (version,) = spec["versions"]
    root = strict(version["schema"]["openAPIV3Schema"])
    name, api = spec["names"]["kind"], f"{spec['group']}/{version['name']}"
    head = {"kind": {"const": name}, "apiVersion": {"const": api}}
    required = ["apiVersion", "kind", "metadata", *root.get("required", ())]
    own = root | {"properties": root["properties"] | head, "required": list(dict.fromkeys(required))}
    return {"if": {"properties": {"kind": {"const": name}}, "required": ["kind"]}, "then": own}


def strict(shape: JSONObject) -> JSONObject:
    """Return a schema that rejects unknown fields, without keywords that only API servers use.

    >>> strict({"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-list-type": "set"}}})
    {'type': 'object', 'properties': {'a': {'type': 'string'}}, 'additionalProperties': False}
    """
    keywords = {name: _subschema(name, value) for name, value in shape.items() if not name.startswith("x-kubernetes-")}
    if "required" in keywords:  # defaults are set before required fields are checked
        keywords["required"] = [
            name for name in shape["required"] if "default" not in shape["properties"].get(name, {})
        ]
    is_open = "additionalProperties" in shape or "x-kubernetes-preserve-unknown-fields" in shape
    return keywords | ({"additionalProperties": False} if "properties" in shape and not is_open else {})


def _subschema(name: str, value: JSON) -> JSON:
    match name:
        case "properties":
            return {field: strict(child) for field, child in value.items()}
        case "items" | "additionalProperties" | "not" if isinstance(value, dict):
            return strict(value)
        case _:
            return value
