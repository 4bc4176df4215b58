"""Parses write options (`dryRun`, `fieldManager`, `fieldValidation`), and collects the warnings of the response."""

from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from kuberuntime.objects.field import FieldError, invalid, not_supported
from kuberuntime.objects.field import Kind as FieldKind
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.kind import Kind
from localkube.apiserver.requests.call import Call

Validation: TypeAlias = Literal["Ignore", "Warn", "Strict"]
OptionsKind: TypeAlias = Literal["CreateOptions", "UpdateOptions", "PatchOptions", "DeleteOptions"]

VALIDATIONS: Final[dict[str, Validation]] = {"": "Warn", "Ignore": "Ignore", "Warn": "Warn", "Strict": "Strict"}

LONGEST_MANAGER: Final = 128


class WriteOptions(Struct, frozen=True):
    """The options of a write. `warnings` are collected during the write and returned as Warning headers."""

    dry_run: bool = False
    manager: str = "unknown"
    validation: Validation = "Warn"
    warnings: list[str] = field(default_factory=list)


def parse(call: Call, kind: OptionsKind) -> WriteOptions:
    """Parse the options of a create, update or patch."""
    errors: list[FieldError] = []
    dry_run = call.query.get("dryRun")
    if dry_run not in {None, "All"}:
        errors.append(not_supported("dryRun", [dry_run], ["All"]))
    validation = call.query.get("fieldValidation", "")
    if validation not in VALIDATIONS:
        errors.append(not_supported("fieldValidation", validation, ["", "Ignore", "Strict", "Warn"]))
    errors += manager_errors(call.query.get("fieldManager", ""))
    if errors:
        raise apierrors.invalid("meta.k8s.io", kind, "", errors)
    return WriteOptions(dry_run == "All", field_manager(call), VALIDATIONS[validation])


def manager_errors(name: str) -> list[FieldError]:
    """Return the errors of a field manager name."""
    if len(name.encode()) > LONGEST_MANAGER:
        return [FieldError(FieldKind.TOO_LONG, "fieldManager", detail=f"may not be more than {LONGEST_MANAGER} bytes")]
    unprintable = ((index, character) for index, character in enumerate(name) if not character.isprintable())
    return [
        invalid("fieldManager", name, f"invalid character U+{ord(character):04X} (at position {index})")
        for index, character in unprintable
    ]


def field_manager(call: Call) -> str:
    """Return the requested field manager, or the first word of the user agent if it is absent."""
    name = call.query.get("fieldManager") or call.headers.get("user-agent", "").partition("/")[0]
    return name[:LONGEST_MANAGER] or "unknown"


def check_fields(kind: Kind, obj: JSONObject, options: WriteOptions) -> None:
    """Reject unknown fields in strict validation, or add warnings about them, depending on `fieldValidation`."""
    texts = unknown_fields(kind, obj, options)
    if texts and options.validation == "Strict":
        resource = kind.resource
        raise apierrors.bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}:'
            f" strict decoding error: {', '.join(texts)}"
        )
    options.warnings.extend(texts)


def unknown_fields(kind: Kind, obj: JSONObject, options: WriteOptions) -> list[str]:
    """Return an error for each unknown field of the object, unless validation ignores them."""
    if options.validation == "Ignore":
        return []
    return [f'unknown field "{path}"' for path in kind.unknown_fields(obj)]
