"""Reads the desired settings from the spec and annotations of the `cluster` object (R-OP-4).

Values that the schema rejects, but that an older CRD may have permitted, mean the default.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.install.installsettings import Certificates, LogFormat, Placement
from leaderworkerset.install.operatornames import (
    CERTIFICATES,
    DELETE_CRDS,
    GROUP_RESTARTS,
    LOG_FORMAT,
    POD_ADMISSION,
    REMOVE_OPERAND,
)

MANAGED: Final = ("", "Managed")
REMOVED: Final = "Removed"
OPERAND_VERBOSITY: Final = {"Normal": 2, "Debug": 4, "Trace": 6, "TraceAll": 9}
"""The operand's verbosity for each `logLevel`. The default is Normal (R-OP-20)."""

OPERATOR_VERBOSITY: Final = {"Normal": 2, "Debug": 4, "Trace": 6, "TraceAll": 8}
"""The operator's verbosity for each `operatorLogLevel` (R-OP-27)."""


class OperatorSettings(Struct, frozen=True, kw_only=True):
    """The desired settings of the operator. `overrides` is an unsupported patch of the manager configuration.

    `group_restarts` is the text of the configuration's section of that name, empty for none; `pod_admission` a field.
    """

    management_state: str = ""
    verbosity: int = 2
    log_format: LogFormat = "console"
    placement: Placement = field(default_factory=Placement)
    certificates: Certificates = "cert-manager"
    deletes_definitions: bool = False
    removes_operand: bool = False
    group_restarts: str = ""
    pod_admission: str = ""
    overrides: JSONObject = field(default_factory=dict)

    @property
    def is_managed(self) -> bool:
        """Return whether the operand is maintained, which is false for Unmanaged, Removed and Force (R-OP-24)."""
        return self.management_state in MANAGED

    @property
    def is_removed(self) -> bool:
        """Return whether the operand must be removed. This also requires the annotation."""
        return self.management_state == REMOVED and self.removes_operand


def read(obj: JSONObject) -> OperatorSettings:
    """Read the settings from the object."""
    spec, annotations = meta.spec(obj), meta.annotations(obj)
    return OperatorSettings(
        management_state=str(spec.get("managementState") or ""),
        verbosity=OPERAND_VERBOSITY.get(str(spec.get("logLevel") or ""), OPERAND_VERBOSITY["Normal"]),
        log_format="json" if annotations.get(LOG_FORMAT) == "json" else "console",
        placement=_placement(spec.get("nodePlacement")),
        certificates="internal" if annotations.get(CERTIFICATES) == "internal" else "cert-manager",
        deletes_definitions=annotations.get(DELETE_CRDS) == "true",
        removes_operand=annotations.get(REMOVE_OPERAND) == "true",
        group_restarts=annotations.get(GROUP_RESTARTS, ""),
        pod_admission=annotations.get(POD_ADMISSION, ""),
        overrides=_object(spec.get("unsupportedConfigOverrides")),
    )


def operator_verbosity(obj: Mapping[str, Any]) -> int:
    """Return the verbosity of the operator.

    >>> operator_verbosity({"spec": {"operatorLogLevel": "Debug"}}), operator_verbosity({"spec": {}})
    (4, 2)
    """
    level = str(meta.spec(obj).get("operatorLogLevel") or "")
    return OPERATOR_VERBOSITY.get(level, OPERATOR_VERBOSITY["Normal"])


def _object(value: object) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _placement(value: object) -> Placement:
    """Read `nodePlacement` (R-OP-21). An empty selector is omitted, and empty tolerations are included."""
    if not isinstance(value, dict):
        return Placement()
    selector, tolerations = _object(value.get("nodeSelector")), value.get("tolerations")
    are_tolerations = isinstance(tolerations, list) and all(isinstance(toleration, dict) for toleration in tolerations)
    return Placement(node_selector=selector, tolerations=tolerations if are_tolerations else None)
