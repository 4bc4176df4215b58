"""Implements rules for CustomResourceDefinitions, with the messages of kube-apiserver."""

from collections.abc import Iterator
from typing import Any

from kuberuntime.objects import names
from kuberuntime.objects.field import FieldError, all_invalid, invalid, not_supported, required_error
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules.values import forbidden, not_found, validate_choice
from kuberuntime.texts import jsonpath
from localkube.apiserver.custom import keywords
from localkube.apiserver.custom.keywords import PatternError
from localkube.apiserver.custom.structural import EMBEDDED, INT_OR_STRING, LIST_KEYS, LIST_TYPE, PRESERVE, Structural

SCOPES = ("Cluster", "Namespaced")
TYPES = ("array", "boolean", "integer", "number", "object", "string")
LIST_TYPES = ("atomic", "map", "set")
RULES = "x-kubernetes-validations"


def validate(crd: JSONObject) -> Iterator[FieldError]:
    """Yield all errors of a CRD."""
    spec = crd["spec"]
    kind_names = spec["names"]
    expected = f"{kind_names['plural']}.{spec['group']}"
    name = crd["metadata"].get("name", "")
    if name != expected:
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    yield from _validate_group(spec["group"])
    yield from validate_choice(spec["scope"], SCOPES, "spec.scope")
    yield from _validate_names(kind_names)
    yield from _validate_versions(spec["versions"] or [])


def _validate_group(group: str) -> Iterator[FieldError]:
    if not group:
        yield required_error("spec.group")
        return
    yield from all_invalid("spec.group", group, names.dns_1123_subdomain(group))
    if "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")


def _validate_names(kind_names: JSONObject) -> Iterator[FieldError]:
    for field in ("plural", "singular", "kind", "listKind"):
        value = kind_names.get(field, "")
        if not value:
            yield required_error(f"spec.names.{field}")
        yield from all_invalid(f"spec.names.{field}", value, names.dns_1035_label(value.lower()) if value else ())
    if kind_names.get("kind") and kind_names.get("kind") == kind_names.get("listKind"):
        yield invalid("spec.names.listKind", kind_names["listKind"], "kind and listKind may not be the same")


def _validate_versions(versions: list[JSONObject]) -> Iterator[FieldError]:
    if not versions:
        yield required_error("spec.versions", "must have exactly one version marked as storage version")
        return
    if sum(version["storage"] for version in versions) != 1:
        version_names = [version["name"] for version in versions]
        yield invalid("spec.versions", version_names, "must have exactly one version marked as storage version")
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        yield from all_invalid(f"{path}.name", version["name"], names.dns_1035_label(version["name"]))
        if version["served"] and not version["storage"]:
            yield forbidden(f"{path}.served", "only the storage version can be served by this API server")
        yield from _validate_version(version, path)


def _validate_version(version: JSONObject, path: str) -> Iterator[FieldError]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    where = f"{path}.schema.openAPIV3Schema"
    if schema is None:
        yield required_error(where, "schemas are required")
    elif schema.get("type") != "object":
        yield invalid(f"{where}.type", schema.get("type", ""), "must be object at the root")
    else:
        errors = list(_validate_schema(schema, where))
        yield from errors or _validate_defaults(schema, where)
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        yield from _validate_column(column, f"{path}.additionalPrinterColumns[{index}]")
    scale = (version.get("subresources") or {}).get("scale") or {}
    for field, prefix in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        if scale and not scale[field].startswith(f"{prefix}."):
            text = f"should be a json path under {prefix}"
            yield invalid(f"{path}.subresources.scale.{field}", scale[field], text)


def _validate_column(column: JSONObject, path: str) -> Iterator[FieldError]:
    if not column["name"]:
        yield required_error(f"{path}.name")
    yield from validate_choice(column["type"], ("boolean", "date", "integer", "number", "string"), f"{path}.type")
    try:
        jsonpath.parse_path(column["jsonPath"])
    except jsonpath.JSONPathError as error:
        yield invalid(f"{path}.jsonPath", column["jsonPath"], str(error))


def _validate_schema(schema: Any, path: str) -> Iterator[FieldError]:
    """Yield errors if a schema is not structural."""
    if not isinstance(schema, dict):
        yield invalid(path, schema, "must be an object")
        return
    yield from _validate_type(schema, path)
    if "$ref" in schema:
        yield forbidden(f"{path}.$ref", "$ref is not supported")
    if schema.get("properties") and schema.get("additionalProperties"):
        yield forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    if schema.get("uniqueItems"):
        yield forbidden(
            f"{path}.uniqueItems", "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        )
    if "pattern" in schema:
        try:
            keywords.compile_pattern(schema["pattern"])
        except PatternError as error:
            yield invalid(f"{path}.pattern", schema["pattern"], f"must be a valid regular expression: {error}")
    yield from _validate_list(schema, path)
    for name, child in (schema.get("properties") or {}).items():
        yield from _validate_schema(child, f"{path}.properties[{name}]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _validate_schema(schema["additionalProperties"], f"{path}.additionalProperties")
    if "items" in schema:
        yield from _validate_schema(schema["items"], f"{path}.items")


def _validate_type(schema: JSONObject, path: str) -> Iterator[FieldError]:
    schema_type = schema.get("type", "")
    if not schema_type:
        if not (schema.get(INT_OR_STRING) or schema.get(PRESERVE)):
            yield required_error(f"{path}.type", "must not be empty for specified object fields")
    elif schema_type not in TYPES:
        yield not_supported(f"{path}.type", schema_type, TYPES)
    if schema.get(EMBEDDED) and schema_type != "object":
        yield invalid(f"{path}.type", schema_type, f"must be object if {EMBEDDED} is true")


def _validate_list(schema: JSONObject, path: str) -> Iterator[FieldError]:
    if schema.get("type") == "array" and "items" not in schema:
        yield required_error(f"{path}.items", "must be specified")
    list_type = schema.get(LIST_TYPE)
    if list_type is None:
        return
    yield from validate_choice(list_type, LIST_TYPES, f"{path}.{LIST_TYPE}")
    keys = schema.get(LIST_KEYS) or ()
    if list_type == "map" and not keys:
        yield required_error(f"{path}.{LIST_KEYS}", f"must not be empty if {LIST_TYPE} is map")
    items = schema.get("items")
    properties = (items.get("properties") if isinstance(items, dict) else None) or {}
    for index, key in enumerate(keys):
        if key not in properties:
            yield not_found(f"{path}.{LIST_KEYS}[{index}]", key)


def _validate_defaults(schema: JSONObject, path: str) -> Iterator[FieldError]:
    """Yield errors for defaults that violate their own schema."""
    if "default" in schema:
        errors: list[FieldError] = []
        node = Structural(schema)
        node.check(node.normalize(schema["default"]), f"{path}.default", errors)
        yield from errors
    for name, child in (schema.get("properties") or {}).items():
        yield from _validate_defaults(child, f"{path}.properties[{name}]")
    for field in ("items", "additionalProperties"):
        if isinstance(schema.get(field), dict):
            yield from _validate_defaults(schema[field], f"{path}.{field}")


def ignored_rules(crd: JSONObject) -> list[str]:
    """Return the paths of the validation rules that are not evaluated."""
    rule_paths: list[str] = []
    for version in crd["spec"]["versions"] or ():
        _collect_rules((version.get("schema") or {}).get("openAPIV3Schema"), version["name"], rule_paths)
    return rule_paths


def _collect_rules(schema: Any, path: str, paths: list[str]) -> None:
    if isinstance(schema, dict):
        if RULES in schema:
            paths.append(path)
        for name, child in (schema.get("properties") or {}).items():
            _collect_rules(child, f"{path}.{name}", paths)
        _collect_rules(schema.get("items"), f"{path}[]", paths)
        _collect_rules(schema.get("additionalProperties"), f"{path}[]", paths)
