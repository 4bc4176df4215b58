"""Builds the MutatingAdmissionPolicy that kube-apiserver uses to add pods to their groups.

The policy combines the rules of the policies that the webhook applies (`core/policies/celmutations.py`), so that both
have the same effect. The policy either changes a pod completely or not at all, because it has one patch, and errors
are ignored. A pod that it skips is not a member yet, which is the condition under which kube-apiserver calls the
webhook afterwards. Every stored pod therefore belongs to its group, even if a policy is missing, was edited, or does
not apply to the pod.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    MUTATING_ADMISSION_POLICIES,
    MUTATING_ADMISSION_POLICY_BINDINGS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    PODS,
    Resource,
)
from kuberuntime.plan import Action, Apply, Plan, Put
from leaderworkerset.api import labels, metadata
from leaderworkerset.core.admission.pod import ADMITTING
from leaderworkerset.core.extensions import UPSTREAM, Extensions
from leaderworkerset.core.policies.celmutations import LABELS, has_label, string_literal
from leaderworkerset.core.policies.gang import NO_GANG, Gang
from leaderworkerset.core.policies.podedits import with_annotations

NAME: Final = "lws-mutating-admission-policy"
KEY: Final = ObjectKey("", NAME)
"""The name of the policy and of its binding."""

MEMBERS: Final[JSONObject] = {"matchExpressions": [{"key": labels.NAME, "operator": "Exists"}]}
"""Selects LeaderWorkerSet pods, so that the admission of other pods is not delayed."""


KINDS: Final = (MUTATING_ADMISSION_POLICIES, MUTATING_ADMISSION_POLICY_BINDINGS)
"""The kinds of the policy and its binding, in the order of creation."""


def _is_member(*containers: str, quantifier: Literal["all", "exists"]) -> str:
    """Return whether a pod has its identity, and all or some containers have the first environment variable.

    The expression does not use optional values, which Kubernetes 1.28 does not support.
    """
    own = [has_label(key) for key in (labels.GROUP_INDEX, labels.GROUP_KEY, labels.WORKER_INDEX)]
    index = f"{LABELS}[{string_literal(labels.WORKER_INDEX)}]"
    is_own = f"object.metadata.name.endsWith({string_literal('-')} + {index})"
    own.append(f"({index} == {string_literal(labels.LEADER_WORKER_INDEX)} || {is_own})")
    has_some = "has(container.env) && size(container.env) > 0"
    is_first = f"{has_some} && container.env[0].name == {string_literal(labels.ENV_LEADER_ADDRESS)}"
    return " && ".join([*own, *(f"{part}.{quantifier}(container, {is_first})" for part in containers)])


NOT_A_MEMBER: Final[JSONObject] = {
    "name": "not-a-member",
    "expression": f"!({_is_member('object.spec.containers', quantifier='exists')})",
}
"""Selects the pods for the webhook, which are pods that the policy did not handle.

A container that a webhook adds gets its variables when kube-apiserver applies the policy again.
"""

_INCOMPLETE: Final[JSONObject] = {
    "name": "incomplete",
    "expression": "!("
    + _is_member("object.spec.containers", "object.spec.?initContainers.orValue([])", quantifier="all")
    + ")",
}


def build(gang: Gang = NO_GANG, extensions: Extensions = UPSTREAM) -> Sequence[tuple[Resource, JSONObject]]:
    """Build the policy and its binding as stored by the API server."""
    specs = (_spec(gang, extensions), {"policyName": NAME})
    objects = [metadata.build(kind, NAME, spec=spec) for kind, spec in zip(KINDS, specs, strict=True)]
    return [(kind, with_annotations(obj, _digest_of(obj))) for kind, obj in zip(KINDS, objects, strict=True)]


def is_unmodified(obj: JSONObject) -> bool:
    """Return whether a manager of any release wrote the spec of this policy object."""
    return _digest_of(obj).items() <= meta.annotations(obj).items()


def _digest_of(obj: JSONObject) -> dict[str, str]:
    text = msgspec.json.encode(obj.get("spec"), order="deterministic")
    return {labels.SPEC_DIGEST: hashlib.sha256(text).hexdigest()[:16]}


def reconcile(
    built: Sequence[tuple[Resource, JSONObject]],
    stored: Mapping[Resource, JSONObject | None],
    configuration: JSONObject | None,
) -> Plan:
    """Return the writes that restore missing and modified objects. The webhook configurations are written last.

    Without that configuration, nothing would admit the pods that the policy skips.
    """
    if configuration is None:
        return Plan()
    reference = {
        **MUTATING_WEBHOOK_CONFIGURATIONS.type_meta,
        "name": meta.name(configuration),
        "uid": meta.uid(configuration),
    }
    owned = [(kind, obj | {"metadata": meta.metadata(obj) | {"ownerReferences": [reference]}}) for kind, obj in built]
    return Plan(tuple(write for kind, obj in owned for write in _restore(kind, obj, stored[kind])))


def _restore(kind: Resource, obj: JSONObject, stored: JSONObject | None) -> Iterator[Action]:
    if stored is None:
        yield Apply(resource=kind, object=obj, manager=labels.FIELD_MANAGER)
        return
    own = meta.metadata(stored) | {
        "labels": meta.labels(stored) | meta.labels(obj),
        "annotations": meta.annotations(stored) | meta.annotations(obj),
        "ownerReferences": meta.metadata(obj)["ownerReferences"],
    }
    restored = stored | {"metadata": own, "spec": obj["spec"]}
    if restored != stored:
        yield Put(resource=kind, object=restored)


def _spec(gang: Gang, extensions: Extensions) -> JSONObject:
    rules = [*(policy.rule for policy in (*ADMITTING, extensions.groups.policy)), gang.rule]
    conditions = {name: expression for rule in rules for name, expression in rule.conditions.items()}
    variables = {name: expression for rule in rules for name, expression in rule.variables.items()}
    patch = " + ".join(patch for rule in rules for patch in rule.patches)
    return {
        "failurePolicy": "Ignore",
        # Reinvoked after webhooks that add containers. The webhook is also called after most webhooks.
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": MEMBERS,
            "resourceRules": [
                {
                    "apiGroups": [PODS.group],
                    "apiVersions": [PODS.version],
                    "operations": ["CREATE"],
                    "resources": [PODS.plural],
                    "scope": "*",
                }
            ],
        },
        "matchConditions": [
            _INCOMPLETE,
            *({"name": name, "expression": expression} for name, expression in conditions.items()),
        ],
        "variables": [{"name": name, "expression": expression} for name, expression in variables.items()],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }
