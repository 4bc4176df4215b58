"""Defines CustomResourceDefinitions and webhook configurations."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from kuberuntime.objects import names, resources
from kuberuntime.objects.field import FieldError, all_invalid, invalid, required_error
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules.values import duplicate, validate_choice, validate_selector
from localkube.apiserver.admission import match_conditions
from localkube.apiserver.builtin.strategy import Strategy
from localkube.apiserver.custom import definition_rules, schema_types

OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
SCOPES = ("*", "Cluster", "Namespaced")
MAX_TIMEOUT = 30
SUBRESOURCE = re.compile(r"[^/]+(/[^/]+)?")


def default_definition(definition: JSONObject) -> None:
    """Set the default names of the kind. Reject schemas whose values have an incorrect type."""
    spec = definition["spec"]
    for version in spec["versions"] or ():
        schema = version.get("schema") or {}
        if schema.get("openAPIV3Schema") is not None:
            place = "spec.versions.schema.openAPIV3Schema"
            schema["openAPIV3Schema"] = schema_types.normalize(schema["openAPIV3Schema"], place)
    kind = spec["names"]["kind"]
    if kind:
        spec["names"].setdefault("singular", kind.lower())
        spec["names"].setdefault("listKind", f"{kind}List")


def accepted_status(definition: JSONObject) -> JSONObject:
    """Return the status of a new CRD, whose kind is served after this call."""
    spec = definition["spec"]
    now = definition["metadata"].get("creationTimestamp")
    conditions = [
        {"type": "NamesAccepted", "reason": "NoConflicts", "message": "no conflicts found"},
        {"type": "Established", "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"},
    ]
    ignored = definition_rules.ignored_rules(definition)
    if ignored:
        text = f"this API server does not evaluate x-kubernetes-validations: {', '.join(ignored)}"
        conditions.append({"type": "RulesIgnored", "reason": "NotSupported", "message": text})
    return {
        "conditions": [{"status": "True", "lastTransitionTime": now} | condition for condition in conditions],
        "acceptedNames": spec["names"],
        "storedVersions": [version["name"] for version in spec["versions"] or () if version["storage"]],
    }


def validate_definition(new: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the validation errors of a CRD or of a change to it."""
    yield from definition_rules.validate(new)
    if old is not None:
        for field in ("group", "scope"):
            if new["spec"][field] != old["spec"][field]:
                yield invalid(f"spec.{field}", new["spec"][field], "field is immutable")
        for field in ("plural", "kind"):
            if new["spec"]["names"][field] != old["spec"]["names"][field]:
                yield invalid(f"spec.names.{field}", new["spec"]["names"][field], "field is immutable")


def validate_webhooks(new: JSONObject, _old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the errors of a webhook configuration."""
    seen: set[str] = set()
    for index, webhook in enumerate(new.get("webhooks") or ()):
        path = f"webhooks[{index}]"
        name = webhook["name"]
        yield from _validate_name(name, f"{path}.name")
        if name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)
        yield from _validate_webhook(webhook, path)


def _validate_name(name: str, path: str) -> Iterator[FieldError]:
    if not name:
        yield required_error(path)
        return
    yield from all_invalid(path, name, names.dns_1123_subdomain(name))
    if name.count(".") < 2:
        yield invalid(path, name, "should be a domain with at least three segments separated by dots")


def _validate_webhook(webhook: JSONObject, path: str) -> Iterator[FieldError]:
    if not webhook["admissionReviewVersions"]:
        yield required_error(f"{path}.admissionReviewVersions", "must specify one of v1, v1beta1")
    elif not {"v1", "v1beta1"} & set(webhook["admissionReviewVersions"]):
        text = "must include at least one of v1, v1beta1"
        yield invalid(f"{path}.admissionReviewVersions", webhook["admissionReviewVersions"], text)
    if webhook["sideEffects"] is None:
        yield required_error(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
    else:
        yield from validate_choice(webhook["sideEffects"], ("None", "NoneOnDryRun"), f"{path}.sideEffects")
    yield from validate_choice(webhook["failurePolicy"], ("Fail", "Ignore"), f"{path}.failurePolicy")
    yield from validate_choice(webhook["matchPolicy"], ("Equivalent", "Exact"), f"{path}.matchPolicy")
    if "reinvocationPolicy" in webhook:
        yield from validate_choice(webhook["reinvocationPolicy"], ("IfNeeded", "Never"), f"{path}.reinvocationPolicy")
    if not 1 <= webhook["timeoutSeconds"] <= MAX_TIMEOUT:
        text = f"the timeout value must be between 1 and {MAX_TIMEOUT} seconds"
        yield invalid(f"{path}.timeoutSeconds", webhook["timeoutSeconds"], text)
    yield from match_conditions.validate(webhook, path)
    for field in ("namespaceSelector", "objectSelector"):
        yield from validate_selector(webhook[field], f"{path}.{field}")
    for index, rule in enumerate(webhook.get("rules") or ()):
        yield from _validate_rule(rule, f"{path}.rules[{index}]")
    yield from _validate_client(webhook["clientConfig"], f"{path}.clientConfig")


def _validate_rule(rule: JSONObject, path: str) -> Iterator[FieldError]:
    for field in ("operations", "apiGroups", "apiVersions", "resources"):
        if not rule.get(field):
            yield required_error(f"{path}.{field}")
    for index, operation in enumerate(rule.get("operations") or ()):
        yield from validate_choice(operation, OPERATIONS, f"{path}.operations[{index}]")
    for index, resource in enumerate(rule.get("resources") or ()):
        if not SUBRESOURCE.fullmatch(resource):
            yield invalid(f"{path}.resources[{index}]", resource, "must be a resource, or resource/subresource")
    yield from validate_choice(rule["scope"], SCOPES, f"{path}.scope")


def _validate_client(client: JSONObject, path: str) -> Iterator[FieldError]:
    if ("url" in client) == ("service" in client):
        yield required_error(path, "exactly one of url or service is required")
    if "url" not in client:
        return
    url = urlsplit(client["url"])
    if url.scheme != "https":
        text = "'https' is the only allowed URL scheme; desired format: https://host[/path]"
        yield invalid(f"{path}.url", client["url"], text)
    if not url.hostname:
        yield invalid(f"{path}.url", client["url"], "host must be specified; desired format: https://host[/path]")
    if url.username or url.query or url.fragment:
        yield invalid(f"{path}.url", client["url"], "user information, query and fragment are not permitted")


DEFINITION = Strategy(
    resource=resources.CUSTOM_RESOURCE_DEFINITIONS,
    struct="CustomResourceDefinition",
    description="A CustomResourceDefinition adds a kind to the cluster.",
    default=default_definition,
    initial_status=accepted_status,
    validate=validate_definition,
    generation="spec",
    has_status=True,
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    requires_qualified_finalizers=False,
)

MUTATING = Strategy(
    resource=resources.MUTATING_WEBHOOK_CONFIGURATIONS,
    struct="MutatingWebhookConfiguration",
    description="A MutatingWebhookConfiguration registers webhooks that can change objects before they are stored.",
    validate=validate_webhooks,
    generation="object",
    categories=("api-extensions",),
    requires_qualified_finalizers=False,
)

VALIDATING = Strategy(
    resource=resources.VALIDATING_WEBHOOK_CONFIGURATIONS,
    struct="ValidatingWebhookConfiguration",
    description="A ValidatingWebhookConfiguration registers webhooks that can reject objects before they are stored.",
    validate=validate_webhooks,
    generation="object",
    categories=("api-extensions",),
    requires_qualified_finalizers=False,
)
