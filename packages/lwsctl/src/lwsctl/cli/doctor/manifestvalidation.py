"""Validates manifests as an API server with LeaderWorkerSets does, first by schema and then by admission. Pure.

The input is manifests. The output is an error for each invalid field, and a note about objects of other kinds, which
only an API server can validate. Pod templates are validated with their schema. Rules that apply to pods, such as
quotas, are unknown.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.fieldtypes import round_trip
from leaderworkerset.api.leaderworkerset import decode
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS
from leaderworkerset.decisions.admissionchecks import (
    NoGang,
    Support,
    default_leaderworkerset,
    disaggregatedset_warnings,
    leaderworkerset_warnings,
    validate_disaggregatedset,
    validate_leaderworkerset,
)
from leaderworkerset.decisions.installedkinds import MANAGED
from lwsctl.cli.doctor.findings import CheckResult, Level
from lwsctl.cli.doctor.schemacheck import schema_errors
from lwsctl.cli.reading.manifests import Document

CODE: Final = "LWS-D012"
SUBJECT: Final = "validity"
FIX: Final = "correct the field; otherwise, the API server rejects the object"
FIX_WARNED: Final = "correct the field; the API server accepts the object, but prints this warning"
FIX_UNCHECKED: Final = "use `lws apply --dry-run -f FILE` to validate the object on a cluster"
ANY: Final = Support(is_enabled=True, provider="kubernetes")
"""The assumed scheduler support. It is unknown, so `spec.scheduling` is validated regardless of schedulers."""


def validate_manifests(documents: Iterable[Document]) -> Iterator[CheckResult]:
    """Yield an error for each invalid field or a success result, and a note about unchecked objects."""
    results: list[CheckResult] = []
    others: dict[str, None] = {}
    checked = 0
    schemas = {
        (definition["spec"]["group"], definition["spec"]["names"]["kind"]): definition["spec"]["versions"]
        for definition in MANAGED.definitions()
    }
    for document in documents:
        obj = document.object
        versions = schemas.get((str(obj.get("apiVersion")).rpartition("/")[0], str(obj.get("kind"))))
        if versions is None:
            others[f"{obj.get('kind')} {meta.name(obj)}"] = None
            continue
        checked += 1
        errors = rejection_reasons(obj, versions)
        results += [CheckResult(CODE, Level.ERROR, SUBJECT, document.message(text), FIX) for text in errors]
        warnings = () if errors else _warnings(obj)
        results += [CheckResult(CODE, Level.WARNING, SUBJECT, document.message(text), FIX_WARNED) for text in warnings]
    if checked and not results:
        results.append(
            CheckResult(
                CODE, Level.OK, SUBJECT, "LeaderWorkerSets and DisaggregatedSets match their schema and pass admission"
            )
        )
    yield from results
    if others:
        text = f"not checked without an API server: {', '.join(others)}"
        yield CheckResult("LWS-D013", Level.NOTE, SUBJECT, text, FIX_UNCHECKED)


def rejection_reasons(obj: JSONObject, versions: list[JSONObject]) -> list[str]:
    """Return the reasons why an API server would reject an object.

    Admission is checked only if the schema is valid.
    """
    obj = obj | {"metadata": {"namespace": "default"} | meta.metadata(obj)}
    version = str(obj["apiVersion"]).rpartition("/")[2]
    served = {entry["name"]: entry["schema"]["openAPIV3Schema"] for entry in versions}
    if version not in served:
        return [f"apiVersion: Unsupported value: {version!r}: served: {', '.join(served)}"]
    return list(schema_errors(served[version], obj)) or [str(error) for error in _admission_errors(obj)]


def _warnings(obj: JSONObject) -> Iterable[str]:
    match obj["kind"]:
        case LEADERWORKERSETS.kind:
            return leaderworkerset_warnings(decode(default_leaderworkerset(obj)))
        case DISAGGREGATED_SETS.kind:
            return disaggregatedset_warnings(obj)
        case _:
            return ()


def _admission_errors(obj: JSONObject) -> Iterable[object]:
    try:
        match obj["kind"]:
            case LEADERWORKERSETS.kind:
                round_trip(LEADERWORKERSETS.kind, obj)
                return validate_leaderworkerset(decode(default_leaderworkerset(obj)), gang=NoGang(ANY))
            case DISAGGREGATED_SETS.kind:
                return validate_disaggregatedset(obj, support=ANY)
            case _:
                return ()
    except ValueError as error:
        return [error]
