"""Writes the API reference from the code. With `--check`, only reports if it is out of date.

In: the CRDs, the configuration, the names in the code (`codenames.py`), and their descriptions (`names.toml`). Out: the
pages `docs/reference/api/`.

python -m docs.generate_reference [--check]
"""
# ruff: noqa: INP001 - a script of its own, which talks

import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Final, get_args

import msgspec
from docs import codenames, generatedpage

from kuberuntime.objects.duration import Duration
from kuberuntime.standardstreams import PIPE_CLOSED
from leaderworkerset.api import descriptions, disaggregatedset_crd
from leaderworkerset.api.conditions import AVAILABLE, CONDITIONS, PROGRESSING
from leaderworkerset.api.crd import leaderworkerset_crd
from leaderworkerset.api.usersettings import SETTINGS
from leaderworkerset.core import reconcilefailure
from leaderworkerset.core.disaggregatedset import setstatus
from leaderworkerset.manager.config.configuration import API_VERSION, KIND, Configuration
from leaderworkerset.operator.operatorcrd import operator_crd
from leaderworkerset.operator.operatorstatus import OperatorCondition
from leaderworkerset.rendezvous.connectionerrors import FailureReason
from lwsctl.cli import errors
from lwsctl.cli.commands.explain import EXIT_CODES

ROOT: Final = Path(__file__).parent
FOLDER: Final = ROOT / "reference" / "api"
NAMES: Final = ROOT / "names.toml"
CONCEPTS: Final = ROOT / "concepts"
EXPLAINED: Final = ("leaderworkerset-v1", "disaggregatedset-v1")
"""The kinds whose fields have a concept page."""
PREFIX: Final = "leaderworkerset.sigs.k8s.io/"

REPEATED: Final = re.compile(
    r" (?:Defaults to|Immutable|The level is immutable|It cannot be|The size of the group, or|Immediate requires|Only \w+ is)[^.]*\."
)
"""The sentences of a description that repeat the default or the validation."""
CONDITIONS_LINK: Final = "For their meaning, see [Conditions](conditions-events-metrics.md#conditions)."

LONGEST_PATTERN: Final = 50
"""The maximum number of characters in a displayed pattern."""

KUBERNETES: Final = "https://kubernetes.io/docs/reference/kubernetes-api/"
EMBEDDED: Final = {
    "leaderTemplate": ("PodTemplateSpec", f"{KUBERNETES}workload-resources/pod-template-v1/#PodTemplateSpec"),
    "workerTemplate": ("PodTemplateSpec", f"{KUBERNETES}workload-resources/pod-template-v1/#PodTemplateSpec"),
    "volumeClaimTemplates": (
        "[]PersistentVolumeClaim",
        f"{KUBERNETES}config-and-storage-resources/persistent-volume-claim-v1/",
    ),
    "conditions": ("[]Condition", f"{KUBERNETES}common-definitions/condition/"),
    "tolerations": ("[]Toleration", f"{KUBERNETES}workload-resources/pod-v1/#scheduling"),
    "generations": ("[]GenerationStatus", "https://github.com/openshift/api/blob/master/operator/v1/types.go"),
    "metadata": ("ObjectMeta", f"{KUBERNETES}common-definitions/object-meta/"),
}
"""The fields with a Kubernetes type, the name of this type, and its reference."""

HEAD: Final = """\
# {title}

<!-- Written by docs/generate_reference.py from the code and docs/names.toml. Do not edit: make generate. -->

"""


class Page(msgspec.Struct, frozen=True):
    """A reference page, with its title, its first paragraph, and the function that writes the rest."""

    title: str
    introduction: str
    body: Callable[[], Iterator[str]]


@cache
def names() -> dict[str, Any]:
    """Return the descriptions."""
    return tomllib.loads(NAMES.read_text(encoding="utf-8"))


def full_names(table: str) -> dict[str, dict[str, Any]]:
    """Return the entries of a table by their prefixed names."""
    return {prefix + name: entry for prefix, entries in names()[table].items() for name, entry in entries.items()}


def table(columns: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    yield from (f"| {' | '.join(text.replace('|', chr(92) + '|') for text in row)} |" for row in rows)
    yield ""


def code(value: object) -> str:
    """Return a value as code, either as JSON or unchanged if it is a string."""
    if isinstance(value, str):
        return f"`{value}`" if value else '`""`'
    return f"`{msgspec.json.encode(value).decode()}`"


# Kinds.


def schema_of(crd: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of the only version of a CRD."""
    (version,) = crd["spec"]["versions"]
    root: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return root


def kinds() -> dict[str, dict[str, Any]]:
    """Return the described schema of each kind, by page name."""
    own = descriptions.OWN_ONLY
    return {
        "leaderworkerset-v1": schema_of(descriptions.with_descriptions(leaderworkerset_crd(), own)),
        "disaggregatedset-v1": schema_of(disaggregatedset_crd.describe_disaggregatedset(own)),
        "disaggregatedsetrolescaler-v1": schema_of(disaggregatedset_crd.describe_role_scaler(own)),
        "leaderworkersetoperator-v1": schema_of(operator_crd()),
    }


def fields(schema: Mapping[str, Any], path: str, *, skipped: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the fields of a schema in order, with their paths. Omit the fields of Kubernetes types."""
    for name, field in schema.get("properties", {}).items():
        place = f"{path}.{name}" if path else name
        yield place, field
        if name in EMBEDDED or place == skipped:
            continue
        inner = field["items"] if field.get("type") == "array" else field
        yield from fields(inner, f"{place}[]" if inner is not field else place, skipped=skipped)


def kind_page(name: str, skipped: str = "") -> Iterator[str]:
    """Write the tables of a kind, one for each object with fields."""
    schema = kinds()[name]
    groups: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for path, field in fields(schema, "", skipped=skipped):
        if path not in {"apiVersion", "kind", "metadata"}:
            groups.setdefault(path.rpartition(".")[0], []).append((path, field))
    for parent, members in groups.items():
        yield f"## {parent or 'Top level'}"
        yield ""
        rows = (field_row(name, path, field) for path, field in members)
        yield from table(("Field", "Type", "Default", "Validation", "Description"), rows)


def field_row(kind: str, path: str, field: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the table row of a field."""
    own_rules = names()["rules"]["leaderworkerset"] if kind == "leaderworkerset-v1" else {}
    rules = " ".join([*schema_rules(field), *([own_rules[path]] if path in own_rules else [])])
    page = concept(kind, path) if kind in EXPLAINED else ""
    default = code(field["default"]) if "default" in field else ""
    leaf = code(path.rpartition(".")[2])
    name = f"[{leaf}](../../concepts/{page})" if page and (CONCEPTS / page).exists() else leaf
    text = REPEATED.sub("", field["description"]) if default or rules else field["description"]
    if path == "status.conditions" and kind != "disaggregatedsetrolescaler-v1":
        text = f"{text.partition('.')[0]}. {CONDITIONS_LINK}"
    return f'<a id="{path}"></a>{name}', type_of(leaf.strip("`"), field), default, rules, text


def concept(kind: str, path: str) -> str:
    """Return the concept page of a field, which is the page with the longest matching path prefix."""
    table = names()["concepts"][kind]
    prefixes = [prefix for prefix in table if path == prefix or (path + ".").startswith(prefix + ".") or not prefix]
    page: str = table[max(prefixes, key=len)]
    return page


def type_of(name: str, field: Mapping[str, Any]) -> str:
    """Return the type of a field."""
    if name in EMBEDDED:
        words, link = EMBEDDED[name]
        return f"[{words}]({link})"
    if field.get("x-kubernetes-int-or-string"):
        return "integer or percentage"
    kind = str(field.get("type", "object"))
    if kind == "array":
        return f"array of {type_of('', field['items'])}s"
    if kind == "object" and "additionalProperties" in field:
        return "map of strings"
    return f"{kind} ({field['format']})" if "format" in field else kind


def schema_rules(field: Mapping[str, Any]) -> Iterator[str]:
    """Yield descriptions of the rules in the schema of a field."""
    if "enum" in field:
        values = ", ".join(code(value) for value in field["enum"])
        yield f"{'One of' if len(field['enum']) > 1 else 'Must be'} {values}."
    for low, high, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
    ):
        if low in field and high in field:
            yield f"Between {field[low]} and {field[high]}{unit}."
        elif low in field:
            yield f"At least {field[low]}{unit}."
        elif high in field:
            yield f"At most {field[high]}{unit.removesuffix('s') if field[high] == 1 else unit}."
    if len(field.get("pattern", "")) in range(1, LONGEST_PATTERN) and not field.get("x-kubernetes-int-or-string"):
        yield f"Must match `{field['pattern']}`."
    yield from (f"{generatedpage.sentence(rule['message'])}." for rule in field.get("x-kubernetes-validations", ()))


# The configuration.


def settings(section: type[msgspec.Struct] = Configuration, path: str = "") -> Iterator[tuple[str, Any, type]]:
    """Yield the configuration fields in order, with their paths, defaults and types."""
    for field in msgspec.structs.fields(section):
        kinds = get_args(field.type) if isinstance(field.type, UnionType) else (field.type,)
        inner = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, msgspec.Struct)), None)
        if inner is not None:
            yield from settings(inner, f"{path}{field.encode_name}.")
        elif field.encode_name not in {"apiVersion", "kind"}:
            yield path + field.encode_name, field.default, field.type


def configuration_page() -> Iterator[str]:
    """Write the configuration tables, one for each section."""
    yield f"```yaml\napiVersion: {API_VERSION}\nkind: {KIND}\n```\n"
    sections: dict[str, list[tuple[str, Any, type]]] = {}
    for path, default, kind in settings():
        sections.setdefault(path.partition(".")[0], []).append((path, default, kind))
    for section, members in sections.items():
        yield f"## {section}"
        yield ""
        rows = (
            (f"`{path.partition('.')[2] or path}`", *value_of(default, kind), names()["configuration"][path])
            for path, default, kind in members
        )
        yield from table(("Field", "Type", "Default", "Description"), rows)


def value_of(default: Any, kind: type) -> tuple[str, str]:
    """Return the type and the default of a setting."""
    words = {Duration: "duration", bool: "boolean", int: "integer", float: "number", str: "string"}
    if kind is Duration:
        return "duration", code(duration(default))
    if kind not in words:
        return "array of strings", code([])
    return words[kind], code(default if kind is not float else round(default))


def duration(seconds: float) -> str:
    """Return a duration in the form that users write.

    >>> duration(15), duration(300), duration(604800)
    ('15s', '5m', '168h')
    """
    if seconds and seconds % 3600 == 0:
        return f"{seconds / 3600:g}h"
    return f"{seconds / 60:g}m" if seconds and seconds % 60 == 0 else f"{seconds:g}s"


# Labels, annotations and variables.


def origin(entry: Mapping[str, Any]) -> str:
    """Return whether the Go project also defines a name."""
    return "this project" if entry.get("ours") else "upstream"


def names_page() -> Iterator[str]:
    """Write the tables of labels, annotations, gates and variables."""
    ours = {setting.annotation: setting for setting in SETTINGS}
    yield "## Annotations that you set\n"
    yield "Set these annotations on the LeaderWorkerSet. Changes take effect without a rollout, unless the linked page states otherwise.\n"
    yield (
        "Admission rejects invalid values, or warns about them."
        " Admission also warns about unknown annotations with this prefix, because they have no effect.\n"
    )
    yield from table(
        ("Annotation", "Values", "Default", "Example", "Meaning", "Defined by"),
        (
            (
                f"[`{name.removeprefix(PREFIX)}`](../../{ours[name].page})",
                entry["values"],
                code(entry["default"]) if "default" in entry else "",
                code(entry["example"]),
                entry["text"],
                origin({"ours": ours[name].is_ours}),
            )
            for name, entry in full_names("settings").items()
        ),
    )
    for column, title in (("Label", "Labels"), ("Annotation", "Other annotations")):
        yield f"## {title}\n"
        yield from table(
            (column, "Set by", "On", "Example", "Meaning", "Defined by"),
            (
                (code(name), entry["by"], entry["on"], code(entry["example"]), entry["text"], origin(entry))
                for name, entry in full_names(f"{column.lower()}s").items()
            ),
        )
    yield "## Gates, finalizers and taints\n"
    yield from table(
        ("Name", "Kind", "Set by", "On", "Meaning", "Defined by"),
        (
            (code(name), entry["kind"], entry["by"], entry["on"], entry["text"], origin(entry))
            for name, entry in full_names("gates").items()
        ),
    )
    yield "## Environment variables\n"
    for title, entries in names()["variables"].items():
        yield f"### {title}\n"
        yield from table(
            ("Variable", "Set by", "Example", "Meaning", "Defined by"),
            (
                (code(name), entry["by"], code(entry["example"]), entry["text"], origin(entry))
                for name, entry in entries.items()
            ),
        )


# Conditions, events, metrics and exit codes.


def signals_page() -> Iterator[str]:
    """Write the tables of conditions, events, metrics and exit codes."""
    yield "## Conditions\n"
    yield "### LeaderWorkerSet\n"
    yield from table(
        ("Type", "Reason when True", "True if", "Never True together with"),
        (
            (
                code(condition.type),
                code(condition.reason),
                f"{generatedpage.sentence(condition.description)}.",
                ", ".join(sorted(map(code, condition.excludes))),
            )
            for condition in CONDITIONS
        ),
    )
    yield "### DisaggregatedSet\n"
    yield from table(
        ("Type", "Reason", "Message"),
        ((code(pair.type), code(pair.reason), f"{pair.message}.") for pair in setstatus.CONDITIONS),
    )
    yield (
        f"If the reconciliation of a LeaderWorkerSet or DisaggregatedSet fails, {code(PROGRESSING.type)} is True and"
        f" {code(AVAILABLE.type)} is False. The reason is {code(reconcilefailure.REASON)}, and the message contains the error.\n"
    )
    yield "### LeaderWorkerSetOperator\n"
    yield from table(
        ("Type", "True if"),
        ((code(kind.value), names()["conditions"]["operator"][kind.value]) for kind in OperatorCondition),
    )
    yield "## Events\n"
    for regarding, reasons in names()["events"].items():
        yield f"### {generatedpage.sentence(regarding)}\n"
        yield from table(("Reason", "Meaning"), ((code(reason), text) for reason, text in reasons.items()))
    yield "## Metrics\n"
    yield "For the permissions that are required to read metrics, see [The manager](../manager.md#metrics).\n"
    yield from table(
        ("Metric", "Type", "Labels", "Meaning"),
        (
            (code(metric.name), metric.type, ", ".join(map(code, metric.labels)), metric.help)
            for metric in sorted(codenames.metrics())
        ),
    )
    yield "## Exit codes\n"
    yield from table(("Program", "Code", "Meaning"), exit_codes())


def exit_codes() -> Iterator[tuple[str, str, str]]:
    """Yield the exit codes of all executables."""
    yield "`lws`", "0", "The command succeeded."
    yield "`lws`", str(errors.FAILED), "An error occurred."
    yield "`lws`", str(errors.USAGE), "An argument is invalid. The command did not change anything."
    yield "`lws`", str(errors.TIMED_OUT), "The timeout expired."
    yield "`lws`", str(errors.INTERRUPTED), "The user interrupted the command with Ctrl-C."
    yield "`lws`", str(PIPE_CLOSED), "The process that reads the output closed the pipe."
    yield "`lws diff`", "0", "The manifest and the cluster do not differ."
    yield "`lws diff`", "1", "The manifest and the cluster differ."
    yield "`lws diff`", "2", "An error occurred."
    yield "`lws exec`", "any", "The command in the container exited with this code."
    for exit_code in sorted(set(EXIT_CODES.values())):
        verdicts = (code(verdict.value) for verdict, value in EXIT_CODES.items() if value == exit_code)
        yield "`lws explain`", str(exit_code), f"The verdict is {' or '.join(verdicts)}."
    yield "`lws manager`, `lws operator`", "0", "The process was stopped."
    yield "`lws manager`, `lws operator`", "1", "A fatal error occurred."
    yield "`lws manager`, `lws operator`", "2", "A flag is invalid."
    for reason in FailureReason:
        text = re.sub(r"^its (\w+)", r"the \1 of the remote rank", reason.description)
        yield "`leaderworkerset.rendezvous`", str(reason.value), f"{generatedpage.sentence(text)}."


PAGES: Final = {
    "leaderworkerset-v1": Page(
        "LeaderWorkerSet v1",
        "This page lists all fields of `leaderworkerset.x-k8s.io/v1`, kind `LeaderWorkerSet` (short name `lws`).\n"
        "Each field links to the page that explains it.",
        lambda: kind_page("leaderworkerset-v1"),
    ),
    "disaggregatedset-v1": Page(
        "DisaggregatedSet v1",
        "This page lists all fields of `disaggregatedset.x-k8s.io/v1`, kind `DisaggregatedSet`.\n"
        "The fields of `spec.roles[].spec` are the same as in a [LeaderWorkerSet](leaderworkerset-v1.md#spec).",
        lambda: kind_page("disaggregatedset-v1", "spec.roles[].spec"),
    ),
    "disaggregatedsetrolescaler-v1": Page(
        "DisaggregatedSetRoleScaler v1",
        "This page lists all fields of the kind `DisaggregatedSetRoleScaler` (short name `dsrs`) in `disaggregatedset.x-k8s.io/v1`.",
        lambda: kind_page("disaggregatedsetrolescaler-v1"),
    ),
    "leaderworkersetoperator-v1": Page(
        "LeaderWorkerSetOperator v1",
        "This page lists all fields of `operator.openshift.io/v1`, kind `LeaderWorkerSetOperator` (short name `lwsop`).\n"
        "To install the operator, see [The operator](../../how-to/operator.md).",
        lambda: kind_page("leaderworkersetoperator-v1"),
    ),
    "configuration-v1": Page(
        "Configuration of the manager",
        "This page lists all fields of the manager's configuration file.\n"
        "If a value is null, zero or empty, the manager uses the default. The manager rejects unknown fields.",
        configuration_page,
    ),
    "labels-annotations-variables": Page(
        "Labels, annotations and environment variables",
        f"This page lists the labels, annotations, gates and environment variables of objects and containers. Annotations that you set have the prefix `{PREFIX}`.\n"
        "In the tables, *upstream* means that a different project defines the name, such as LeaderWorkerSet, Kubernetes or Kueue.",
        names_page,
    ),
    "conditions-events-metrics": Page(
        "Conditions, events, metrics and exit codes",
        "This page lists the conditions, events, metrics and exit codes of the controllers and commands.",
        signals_page,
    ),
}


def pages() -> dict[Path, str]:
    """Return all pages."""
    return {
        FOLDER / f"{name}.md": HEAD.format(title=page.title)
        + f"{page.introduction}\n\n"
        + "\n".join(page.body()).rstrip()
        + "\n"
        for name, page in PAGES.items()
    }


if __name__ == "__main__":
    sys.exit(generatedpage.write("the code and docs/names.toml", pages, FOLDER))
