"""Validates the restart policy and rules of a container, and returns the same errors as kube-apiserver."""

from collections.abc import Iterator
from typing import Final

from kuberuntime.objects.field import FieldError, Kind, required_error
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules.values import validate_choice

POLICIES: Final = ("Always", "Never", "OnFailure")
ACTIONS: Final = ("Restart", "RestartAllContainers")
OPERATORS: Final = ("In", "NotIn")
MOST_RULES: Final = 20
MOST_CODES: Final = 255


def validate(container: JSONObject, where: str, *, is_init: bool) -> Iterator[FieldError]:
    """Yield the errors of `restartPolicy` and `restartPolicyRules`. Init containers with rules require a policy."""
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if policy is not None:
        yield from validate_choice(policy, POLICIES, f"{where}.restartPolicy")
    elif rules:
        yield required_error(f"{where}.restartPolicy", "must specify restartPolicy when restart rules are used")
        if is_init:
            return
    path = f"{where}.restartPolicyRules"
    yield from _at_most(len(rules), MOST_RULES, path)
    for index, rule in enumerate(rules):
        yield from _validate_rule(rule, f"{path}[{index}]")


def _validate_rule(rule: JSONObject, path: str) -> Iterator[FieldError]:
    yield from validate_choice(rule.get("action", ""), ACTIONS, f"{path}.action")
    codes = rule.get("exitCodes")
    if codes is None:
        yield required_error(f"{path}.exitCodes", "must be specified")
        return
    yield from validate_choice(codes.get("operator", ""), OPERATORS, f"{path}.exitCodes.operator")
    yield from _at_most(len(codes.get("values") or []), MOST_CODES, f"{path}.exitCodes.values")


def _at_most(number: int, most: int, path: str) -> Iterator[FieldError]:
    if number > most:
        yield FieldError(Kind.TOO_MANY, path, detail=f"{number}: must have at most {most} items")
