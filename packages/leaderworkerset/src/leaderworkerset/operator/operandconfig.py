"""Builds the operand configuration file with the certificate issuer, TLS profile, restarts, and overrides.

The annotation `lws.x-k8s.io/group-restarts` contains the section `groupRestarts` as JSON, and
`lws.x-k8s.io/pod-admission` the field `podAdmission`. `spec.unsupportedConfigOverrides` is a JSON merge patch (RFC
7386) that is applied to the file last (R-OP-41). The result is decoded as in the manager. If the manager would reject
it, an error is raised before any pod is replaced.
"""

from typing import Final

import msgspec
import yaml

from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.install import rendering
from leaderworkerset.install.installsettings import CONFIGURATION, MOUNTED_CERTIFICATES
from leaderworkerset.install.operatornames import GROUP_RESTARTS, POD_ADMISSION
from leaderworkerset.manager.config import configuration, configurationrules
from leaderworkerset.manager.config.configuration import ConfigurationError
from leaderworkerset.operator.operatorspec import OperatorSettings

FIELD: Final = "spec.unsupportedConfigOverrides"
ANNOTATION: Final = f"metadata.annotations[{GROUP_RESTARTS}]"
DEPTH: Final = 16
"""The maximum nesting depth of a patch. The file has four levels."""


class OverrideError(ValueError):
    """The settings result in an invalid manager configuration. The message contains the field and the reason."""


def render(desired: OperatorSettings, tls: JSONObject) -> str:
    """Return the content of the file. Raise `OverrideError` if the manager would reject it."""
    plain = CONFIGURATION if desired.certificates == "internal" else MOUNTED_CERTIFICATES
    if not (tls or desired.group_restarts or desired.pod_admission or desired.overrides):
        return plain
    document = yaml.safe_load(plain) | ({"tls": tls} if tls else {})
    if desired.group_restarts:
        document["groupRestarts"] = _section(desired.group_restarts)
        _check(document, ANNOTATION)
    if desired.pod_admission:
        document["podAdmission"] = desired.pod_admission
        _check(document, f"metadata.annotations[{POD_ADMISSION}]")
    merged = apply_merge_patch(document, desired.overrides)
    _check(merged, FIELD)
    return rendering.document(merged, sort_keys=False)


def _section(annotation: str) -> JSONObject:
    try:
        return msgspec.json.decode(annotation, type=dict[str, JSON])
    except (msgspec.DecodeError, RecursionError) as error:
        raise OverrideError(f"{ANNOTATION}: must be a JSON object: {error}") from error


def apply_merge_patch(document: JSONObject, patch: JSONObject, depth: int = 1) -> JSONObject:
    """Apply a merge patch. Null removes a field, an object is merged, and other values replace the field.

    >>> apply_merge_patch({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}})
    {'b': {'c': 2, 'd': 3}}
    """
    if depth > DEPTH:
        raise OverrideError(f"{FIELD}: must not be nested deeper than {DEPTH} levels")
    result = dict(document)
    for name, value in patch.items():
        below = result.pop(name, None)
        if isinstance(value, dict):
            result[name] = apply_merge_patch(below if isinstance(below, dict) else {}, value, depth + 1)
        elif value is not None:
            result[name] = value
    return result


def _check(document: JSONObject, place: str) -> None:
    try:
        decoded = configuration.decode(document)
        configurationrules.check_tls(decoded.tls)
    except ConfigurationError as error:
        raise OverrideError(f"{place}: {error}") from error
    if errors := configurationrules.validate(decoded):
        raise OverrideError(f"{place}: {'; '.join(map(str, errors))}")
