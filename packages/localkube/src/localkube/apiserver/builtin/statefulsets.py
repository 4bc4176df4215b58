"""Defines StatefulSets and ControllerRevisions."""

from collections.abc import Iterator

from kuberuntime.objects import meta, names, resources, selectors
from kuberuntime.objects.field import FieldError, Kind, all_invalid, invalid, not_supported, required_error
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules import pod_defaults, pod_rules, templates
from kuberuntime.objects.podrules.values import forbidden, validate_immutable, validate_minimum, validate_selector
from localkube.apiserver.builtin.persistentvolumes import validate_claim_spec
from localkube.apiserver.builtin.strategy import Strategy
from localkube.apiserver.model.kind import ScalePaths

MANAGEMENT_POLICIES = ("OrderedReady", "Parallel")
RETENTION_POLICIES = ("Retain", "Delete")
MISMATCH = "`selector` does not match template `labels`"
CHANGEABLE = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
IMMUTABLE_TEXT = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy',"
    " 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def default(statefulset: JSONObject) -> None:
    """Set defaults. `maxUnavailable` is dropped, because its feature gate is disabled in Kubernetes 1.36 (T-11)."""
    spec = statefulset["spec"]
    strategy = spec["updateStrategy"]
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("partition", 0)
        rolling.pop("maxUnavailable", None)
    pod_defaults.default_spec(spec["template"]["spec"])
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        typed_claim = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"} | claim
        spec["volumeClaimTemplates"][index] = typed_claim | {"status": {"phase": "Pending"} | claim["status"]}


def validate(new: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the validation errors of a StatefulSet or of a change to it."""
    spec = new["spec"]
    if old is not None and _immutable_fields(spec) != _immutable_fields(old["spec"]):
        yield forbidden("spec", IMMUTABLE_TEXT)
    if old is not None and spec == old["spec"]:
        return
    if spec["podManagementPolicy"] not in MANAGEMENT_POLICIES:
        text = "must be 'OrderedReady' or 'Parallel'"
        yield invalid("spec.podManagementPolicy", spec["podManagementPolicy"], text)
    yield from validate_minimum(spec["replicas"], 0, "spec.replicas")
    yield from validate_minimum(spec.get("minReadySeconds", 0), 0, "spec.minReadySeconds")
    yield from validate_minimum(spec.get("ordinals", {}).get("start", 0), 0, "spec.ordinals.start")
    yield from _validate_strategy(spec["updateStrategy"])
    for name, policy in spec["persistentVolumeClaimRetentionPolicy"].items():
        if policy not in RETENTION_POLICIES:
            yield not_supported(f"spec.persistentVolumeClaimRetentionPolicy.{name}", policy, RETENTION_POLICIES)
    if old is None:
        yield from _validate_fixed_fields(spec)
    yield from validate_selector_and_template(spec, "StatefulSet", _with_claims(spec))


def validate_selector_and_template(spec: JSONObject, kind: str, template: JSONObject) -> Iterator[FieldError]:
    """Yield the errors of fields that all apps/v1 kinds share: the pod restart policy and selector."""
    yield from _validate_selector(spec, kind)
    yield from pod_rules.validate_template(template, "spec.template")
    yield from templates.workload_errors(spec["template"], "spec.template", kind)


def _with_claims(spec: JSONObject) -> JSONObject:
    """Return the pod template with the volumes of the claim templates, so that mounts can refer to these volumes."""
    template: JSONObject = spec["template"]
    claims = [meta.name(claim) for claim in spec.get("volumeClaimTemplates") or ()]
    if not claims:
        return template
    own = [volume for volume in template["spec"].get("volumes") or () if volume["name"] not in claims]
    added = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    return template | {"spec": template["spec"] | {"volumes": [*own, *added]}}


def _validate_fixed_fields(spec: JSONObject) -> Iterator[FieldError]:
    if service := spec.get("serviceName"):
        yield from all_invalid("spec.serviceName", service, names.dns_1123_label(service))
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        yield from validate_claim_spec(claim["spec"], f"spec.volumeClaimTemplates[{index}].spec")


def _immutable_fields(spec: JSONObject) -> JSONObject:
    return {name: value for name, value in spec.items() if name not in CHANGEABLE}


def _validate_strategy(strategy: JSONObject) -> Iterator[FieldError]:
    match strategy["type"]:
        case "RollingUpdate":
            path = "spec.updateStrategy.rollingUpdate.partition"
            yield from validate_minimum(strategy["rollingUpdate"]["partition"], 0, path)
        case "OnDelete":
            if "rollingUpdate" in strategy:
                text = "only allowed for updateStrategy 'RollingUpdate'"
                yield invalid("spec.updateStrategy.rollingUpdate", strategy["rollingUpdate"], text)
        case _:
            yield invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'")


def _validate_selector(spec: JSONObject, kind: str) -> Iterator[FieldError]:
    selector = spec["selector"]
    labels = spec["template"]["metadata"].get("labels") or {}
    if selector is None:
        yield required_error("spec.selector")
        yield invalid("spec.template.metadata.labels", labels, MISMATCH)
        return
    errors = list(validate_selector(selector, "spec.selector"))
    yield from errors
    if errors:
        yield FieldError(Kind.INVALID, "spec.selector", selector)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield invalid("spec.selector", selector, f"empty selector is invalid for {kind.lower()}")
    elif not errors and not selectors.from_object(selector).matches(labels):
        yield invalid("spec.template.metadata.labels", labels, MISMATCH)


STATEFULSET = Strategy(
    resource=resources.STATEFULSETS,
    struct="StatefulSet",
    description="A StatefulSet runs pods with ordered and persistent names.",
    name_rule=names.dns_1123_label,
    default=default,
    validate=validate,
    generation="spec",
    has_status=True,
    short_names=("sts",),
    categories=("all",),
    scale=ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector"),
)


def validate_revision(new: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the errors of a ControllerRevision, whose data is immutable (R-REV-7)."""
    if new.get("data") is None:
        yield required_error("data", "data is mandatory")
    yield from validate_minimum(new["revision"], 0, "revision")
    if old is not None:
        yield from validate_immutable(new.get("data"), old.get("data"), "data")


CONTROLLER_REVISION = Strategy(
    resource=resources.CONTROLLER_REVISIONS,
    struct="ControllerRevision",
    description="A ControllerRevision stores one revision of a template, so that it can be restored.",
    validate=validate_revision,
)
