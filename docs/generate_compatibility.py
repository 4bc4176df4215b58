"""Writes docs/reference/compatibility.md and differences.md from code and tests.

With `--check` only report outdated files.

python -m docs.generate_compatibility [--check]
"""
# ruff: noqa: INP001 - a script of its own, which talks

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from docs import generatedpage, stability
from docs.generate_matrix import required
from tests import results
from tests.controlplane import build
from tests.kubernetes.programs import build as packages
from tests.node import programs as nodeprograms

import leaderworkerset
from leaderworkerset.api import kubernetesfeatures, labels
from leaderworkerset.api.metadata import OLDEST_KUBERNETES
from leaderworkerset.manager import managerflags
from leaderworkerset.manager.config.configuration import FeatureGates
from lwsctl.cli.commandtable import COMMANDS

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent
RESULTS: Final = HERE / "reference" / "compatibility.jsonl"
COMPATIBILITY: Final = HERE / "reference" / "compatibility.md"
DIFFERENCES: Final = HERE / "reference" / "differences.md"
PREFIX: Final = "test_differs_from_upstream_"

PAGE: Final = """\
# Compatibility

<!-- Written by docs/generate_compatibility.py. Do not edit: make generate. -->

This page lists the tested versions, the supported versions, and the stability of each interface.

## Versions

| component | version | tests and limits |
|---|---|---|
| this project | {version} | This version and the previous version can read each other's stored objects ([tests](#upgrades)). |
| Kubernetes | {tested} | Tests run on control planes with these versions ([differences](#versions-of-kubernetes)). On other versions, the manager logs a warning, and `lws doctor` reports LWS-D102. |
| Kubernetes | {oldest} and later | Versions before {first} are not tested. On versions before {supported}, the manager and `lws doctor` (LWS-D103) report the missing features. On versions before {oldest}, the manager does not start. |
| kubelet, containerd, CoreDNS | {tested_node}, {containerd}, {coredns} | `make test-node` runs scenarios on nodes with these versions, and with runc and the network plugins of Debian 12 ([test coverage](../explanation/what-the-tests-prove.md)). |
| Python | {pythons} | Tests run the `lws` command, the Python client, and the manager outside of its image with these versions. |
| LeaderWorkerSet API | v1 with the fields of v0.10 and v0.11 | The [contract](contract.md) and the [later changes](contract-newest.md) describe the behavior. See also the [differences](differences.md) from the Go controller. |
| DisaggregatedSet API | v1 | The [contract](contract-disaggregatedset.md) describes the behavior. |
| Kueue | {kueue} | Tests run the Kueue controllers if `make extras` has built them. |
| scheduler-plugins | {plugins} | Tests place groups with the coscheduling scheduler if `make extras` has built it. |
| Helm | {helm} | Tests render, install, upgrade and roll back the chart if `make extras` has built Helm. |
| Volcano | none | Tests verify the PodGroups for Volcano, but do not run the Volcano scheduler ([gang schedulers](matrix.md#gang-schedulers)). |

## What ran

The table shows the results of the most recently recorded test runs. Each run uses one Kubernetes version and one Python version.
`make nightly` records all runs.

| tests | Kubernetes | Python | version | day | passed | failed | skipped |
|---|---|---|---|---|---|---|---|
{results}

## Versions of Kubernetes

`make test-all` runs the integration tests on all Kubernetes versions in the following table, and records the results. `make test-kubernetes`
runs all tests on {default}, and the tests of version differences on {newest}. It also runs a small number of tests on an additional version. The
date of the last commit determines this version ([ADR 42](../adr/0042-versions-of-kubernetes.md)).

| feature | since | {columns} | effect if missing |
|---|---|{rules}|---|
{differing}

## Support

The latest minor version receives fixes. After a new minor version is released, the previous minor
version receives security fixes for three months.

This project supports a Kubernetes version as long as the Kubernetes project supports the version and the tests run on it. Support for a
Kubernetes version ends only with a new minor version of this project. The changelog of the preceding minor version announces the end of
support.

## Upgrades

You can upgrade to the next minor version, and downgrade to the previous version, while groups are running. Version {before} was never
published. The file `tests/predecessor.py` specifies the commit of this version. The following tests cover upgrades from version {before}:

- `tests/e2e/test_upgrade.py` starts the current version with the state of an embedded cluster of version {before}. The state contains
  LeaderWorkerSets, revisions, records of recreations, recorded failures and CRDs. The test verifies that all objects are unchanged, that a
  rollout completes, and that the CRDs still contain all old fields. Then the test starts version {before} with the resulting state.
- `tests/kubernetes/manager/test_upgrade.py` runs LeaderWorkerSets and DisaggregatedSets on a real control plane. The test installs version
  {before}, the current version, and then version {before} again. It verifies that the manager does not write unchanged objects, and that
  each version can roll out and scale objects that the other version created.
- [Separate tests](differences.md#migrate-in-both-directions) cover the migration between this manager and the Go manager.

## Classes

| class | promise |
|---|---|
{classes}

| interface | class |
|---|---|
| fields of DisaggregatedSets, and fields of LeaderWorkerSets in v0.10 | stable |
{fields}
| labels and annotations of LeaderWorkerSet v0.10 | stable |
| annotations that only this project defines: {chosen} | beta |
| labels, annotations, scheduling gates and finalizers that the manager writes: {kept} | internal |
| version `config.lws.x-k8s.io/v1` of the manager's configuration | stable |
| version `config.lws.x-k8s.io/v1alpha1` of the manager's configuration (deprecated) | beta |
| flags of `lws manager` | stable |
| deprecated flags of `lws manager`, which are also deprecated in the Go manager: {deprecated} | stable |
| commands {commands}, and their options | beta |
| commands and options that are not listed as beta | stable |
| output formats `json`, `yaml`, `name`, `jsonpath` and `custom-columns` of the option `-o` | stable |
| exit codes, and the codes of causes and checks (codes are never reused) | stable |
| human-readable output, such as tables, messages and colors | none (use `-o json` in scripts) |
| metrics of the Go manager | stable |
| metrics with the prefix `lws_` | beta |
| `lwsctl.client` | beta |
| modules of the packages `leaderworkerset`, `kuberuntime` and `localkube` | alpha (pin the package version) |
| files of a local cluster (`lws up`) | internal (`lws up` rejects files with an unsupported format, and does not change them) |
| names of installed objects, roles and ports, and values of the Helm chart | stable |

## Feature gates

You can set feature gates in the manager's [configuration](manager.md#configuration-file), or in the values of the Helm chart.

| gate | default | class | effect |
|---|---|---|---|
{gates}

A deprecated field, flag, annotation or value continues to work, but causes a warning. The warning appears in the manager log, in the
response of the API server, or in the standard error output of the command. The changelog lists the deprecation and the replacement under
"Deprecated".
"""

DIFFERENT: Final = """\
# What differs from the Go controller

<!-- Written by docs/generate_compatibility.py from tests and decisions. Do not edit: make generate. -->

This page lists the differences between this project and the Go controller. Names, labels, revisions and environment variables are the same,
so you can migrate in both directions. The following differences are intended, and each difference has a test. If you find a difference that this page
does not list, report it as a bug.

## Migrate in both directions

```bash
lws install --image registry.example.com/lws/leaderworkerset:{version} --wait   # takes over the installation in place
lws doctor                                                                   # reports problems
lws explain -A                                                               # lists stuck LeaderWorkerSets first
```

To return to the Go manager, remove [groupRestarts](../how-to/restarts.md#for-all-leaderworkersets-of-a-cluster) from the manager's configuration, because
the Go manager rejects this section. Then install the Go manager with the upstream manifests. The tests in `packages/leaderworkerset/tests/parity` cover
migrations in both directions, also during rollouts, and verify that no pod is restarted. For details, see [Upgrade and
downgrade](../how-to/upgrade.md).

## Decisions

| decision | difference |
|---|---|
| [0003](../adr/0003-recreation-backoff.md) | Groups that fail repeatedly are recreated with increasing delays, up to a maximum of five minutes. |
| [0004](../adr/0004-max-unavailable.md) | `maxUnavailable` applies on every cluster, even if the StatefulSet controller replaces only one pod at a time. |
| [0005](../adr/0005-installation.md#difference-from-upstreams-roles) | The manager has fewer permissions than the Go manager. |
| [0006](../adr/0006-manager.md) | The manager handles certificates, readiness and the loss of leadership differently than the Go manager. |
| [0010](../adr/0010-bounds.md) | Rollouts never exceed their limits. |
| [0011](../adr/0011-disaggregatedset.md) | Rollouts of DisaggregatedSets do not remove groups that serve requests, and never stall permanently. |
| [0012](../adr/0012-revision-history.md) | The manager keeps old revisions as a rollout history. |
| [0014](../adr/0014-workers-lost-unseen.md) | If a worker is deleted while no manager is running, the next manager detects the deletion. |
| [0017](../adr/0017-newest.md) | The manager supports fields that were added to the API after v0.10. |
| [0025](../adr/0025-places-and-ends.md) | The API server does not store a default for the field `podTerminationPolicy`. A change to this field does not replace leaders. |
| [0029](../adr/0029-stored-values.md) | Invalid values that are already stored do not block updates. When an object is created, more kinds of invalid values are rejected than with the Go controller. |
| [0030](../adr/0030-broken-groups-and-foreign-owners.md) | Broken groups of an earlier revision never block a rollout. Conflicts with objects of other owners are reported. |
| [0031](../adr/0031-leases-and-drains.md) | A manager that becomes the leader compares objects before it applies them, and writes only differences. CA certificates with the serial number 0 are renewed. |
| [0032](../adr/0032-what-a-release-says.md) | The operator becomes available only after the API server has reached the manager's webhooks. |
| [0041](../adr/0041-less-processor-time.md) | The validating webhook for pods is installed but never called, because it would admit every pod. |
| [0042](../adr/0042-versions-of-kubernetes.md) | The manager does not start on Kubernetes versions before 1.27, because StatefulSets in these versions do not support `spec.ordinals`. |
| [0043](../adr/0043-services-of-users.md) | If a Service has the name of a LeaderWorkerSet but selects other pods, the LeaderWorkerSet is unavailable. |
| [0045](../adr/0045-names-of-old-workers.md) | New workers are created only after the old workers with the same names have been deleted. |

## Tests

Each of the following {count} tests verifies one difference. Codes such as R-ROLL-7 identify rules of the [contract](contract.md).
Numbers such as ADR 29 identify decisions in the table above.

| difference | test |
|---|---|
{tests}
"""


class Difference(NamedTuple):
    """A test that verifies a difference from the Go controller."""

    text: str
    test: str


def differences(root: Path = ROOT) -> Iterator[Difference]:
    """Yield the tests that verify a difference, by file."""
    folders = [*root.glob("packages/*/tests"), root / "tests"]
    for path in sorted(path for folder in folders for path in folder.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if PREFIX not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(PREFIX):
                text = " ".join((ast.get_docstring(node) or "").split()).replace("|", r"\|")
                yield Difference(text, f"{path.relative_to(root).as_posix()}::{node.name}")


def compatibility() -> str:
    """Return the page about versions, guarantees and feature gates."""
    project = tomllib.loads((ROOT / "packages/leaderworkerset/pyproject.toml").read_text(encoding="utf-8"))["project"]
    pythons = [match[1] for classifier in project["classifiers"] if (match := re.search(r":: (3\.\d+)$", classifier))]
    return PAGE.format(
        version=leaderworkerset.__version__,
        before="0.1.0",
        tested=", ".join(build.VERSIONS[f"1.{minor}"].removeprefix("v") for minor in kubernetesfeatures.TESTED),
        oldest=OLDEST_KUBERNETES.removesuffix(".0"),
        first=f"1.{min(kubernetesfeatures.TESTED)}",
        supported=f"1.{kubernetesfeatures.SUPPORTED}",
        pythons=", ".join(pythons),
        tested_node=build.VERSIONS[build.DEFAULT].removeprefix("v"),
        containerd=module("containerd", nodeprograms.CONTAINERD, nodeprograms.HERE).removeprefix("v"),
        coredns=module("coredns", "github.com/coredns/coredns", nodeprograms.HERE).removeprefix("v"),
        kueue=module("kueue", "sigs.k8s.io/kueue"),
        plugins=required(packages.SCHEDULER_PLUGINS),
        helm=module("helm", "helm.sh/helm/v3"),
        results="\n".join(ran(results.read(RESULTS))),
        default=build.DEFAULT,
        newest=max(build.VERSIONS),
        columns=" | ".join(version.removeprefix("v") for version in build.VERSIONS.values()),
        rules="|".join("---" for _ in build.VERSIONS),
        differing="\n".join(differing()),
        classes="\n".join(f"| {level.value} | {promise} |" for level, promise in stability.PROMISES.items()),
        fields="\n".join(of_fields()),
        chosen=codes(stability.CHOSEN),
        kept=codes(stability.KEPT),
        deprecated=codes(f"--{flag.name}" for flag in managerflags.FLAGS if managerflags.DEPRECATED in flag.usage),
        commands=codes(f"lws {name}" for name in stability.NEW_COMMANDS if name in COMMANDS),
        gates="\n".join(gates()),
    )


def ran(runs: Iterable[results.Result]) -> Iterator[str]:
    """Yield the table rows of recorded runs."""
    for run in runs:
        cells = (
            run.part,
            run.kubernetes or "none",
            run.python,
            run.version,
            run.day,
            run.passed,
            run.failed,
            run.skipped,
        )
        yield f"| {' | '.join(map(str, cells))} |"


def differing() -> Iterator[str]:
    """Yield the table rows of features that some Kubernetes versions do not support."""
    versions = [version for text in build.VERSIONS.values() if (version := kubernetesfeatures.parse(text))]
    for feature in kubernetesfeatures.FEATURES:
        since = f"1.{feature.since.minor}"
        if feature.exceptions is not None:
            first, end = (f"1.{release.minor}.{release.patch}" for release in feature.exceptions)
            since += f" (disabled from {first}, enabled again in {end})"
        cells = (feature.name, since, *("yes" if feature.is_enabled_in(version) else "no" for version in versions))
        yield f"| {' | '.join(cells)} | {generatedpage.sentence(feature.missing_effect)}. |"


def of_fields() -> Iterator[str]:
    """Yield the table rows of fields that are not stable."""
    for name, level in stability.FIELDS.items():
        struct, _, field = name.partition(".")
        yield f"| `{stability.PLACES[struct]}.{field}` of LeaderWorkerSets | {level.value} |"


def gates() -> Iterator[str]:
    """Yield the table rows of feature gates."""
    for field in msgspec.structs.fields(FeatureGates):
        level, purpose = stability.GATES[field.encode_name]
        yield f"| `{field.encode_name}` | {'on' if field.default else 'off'} | {level.value} | {purpose} |"


def codes(names: Iterable[str]) -> str:
    """Return names as code, separated by commas and without the prefix of this project."""
    return ", ".join(f"`{name.removeprefix(labels.PREFIX)}`" for name in names)


def module(program: str, path: str, root: Path = packages.HERE) -> str:
    """Return the version of the Go module from which a test binary is built."""
    text = (root / program / "go.mod").read_text(encoding="utf-8")
    match = re.search(rf"^\s*(?:require )?{re.escape(path)} (v\S+)", text, re.MULTILINE)
    return match[1] if match else "unknown"


def different() -> str:
    """Return the page about differences."""
    rows = list(differences())
    lines = [f"| {row.text} | `{row.test}` |" for row in rows]
    return DIFFERENT.format(version=leaderworkerset.__version__, count=len(rows), tests="\n".join(lines))


if __name__ == "__main__":
    sys.exit(
        generatedpage.write(
            "versions, classes and tests", lambda: {COMPATIBILITY: compatibility(), DIFFERENCES: different()}
        )
    )
