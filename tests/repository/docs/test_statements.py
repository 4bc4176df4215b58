"""Tests document tables that repeat facts from the code, such as kinds, roles, codes and dependencies."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import fields
from importlib import import_module

import yaml
from bench import everything
from docs import record_run
from testkit import repository

from leaderworkerset.api.conditions import CONDITIONS
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.install.objects import build_all
from leaderworkerset.kinds.managedkinds import MANAGED, managed_kinds
from leaderworkerset.manager.config.configurationrules import GANG_PROVIDERS
from localkube.apiserver.builtin import registry
from localkube.apiserver.frontend.http import BODY_LIMIT, BODY_SECONDS
from localkube.apiserver.storage.store import LARGEST
from lwsctl import client

ROOT = repository.ROOT
VERBS = {"get", "list", "watch", "create", "update", "patch", "delete"}
MEBIBYTE = 2**20
SCRIPTS = [ROOT / "README.md", *(ROOT / "docs/how-to").glob("*.md"), *(ROOT / "examples").rglob("README.md")]
WRITES = re.compile(r"client\.(?:create|update|patch|apply|delete|delete_collection)\(")


def text_of(page: str) -> str:
    return (ROOT / page).read_text()


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table after a heading, without its header."""
    after = f"\n{text_of(page)}".split(f"\n{heading}\n", 1)[1]
    (table,) = re.findall(r"(?:^\|.*\n)+", after, re.MULTILINE)[:1]
    return [[cell.strip() for cell in line.strip("|\n ").split(" | ")] for line in table.splitlines()[2:]]


def words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in re.findall(r"[\w.-]+", text)}


def test_kinds_of_the_embedded_cluster_are_documented() -> None:
    named = words(cell for _, cell in rows("docs/reference/embedded-cluster.md", "## What it serves"))
    defined = {kind.resource.kind for kind in MANAGED.kinds if kind.definition}
    assert {kind.resource.kind for kind in registry.kinds()} | defined <= named


def test_documented_roles_are_installed() -> None:
    granted: dict[str, set[str]] = defaultdict(set)
    for resource, obj in build_all(MANAGED, InstallSettings()):
        for rule in obj["rules"] if resource.kind in {"ClusterRole", "Role"} else ():
            for name in rule.get("resources", ()):
                granted[name] |= {*rule["verbs"]}
    page = {
        named: words([here]) & VERBS
        for what, here, _ in rows("docs/adr/0005-installation.md", "## Difference from upstream's roles")
        for named in words([what.partition(":")[0]]) & granted.keys()
    }
    assert page == {name: granted[name] for name in page}
    bound = {"nodes", "pods", "services", "statefulsets", "controllerrevisions", "events", "leases", "secrets"}
    assert bound | {"leaderworkersets", "disaggregatedsets", "disaggregatedsetrolescalers"} <= page.keys()


def test_documented_codes_of_doctor_exist() -> None:
    source = "".join(path.read_text() for path in (ROOT / "packages/lwsctl/src/lwsctl/cli").rglob("*.py"))
    found = {int(code) for code in re.findall(r"LWS-D(\d+)", source)}
    ranges = [
        [int(number) for number in re.findall(r"D(\d+)", cell)]
        for cell, _ in rows("docs/how-to/see-what-runs.md", "## Check the installation")
    ]
    assert {code for code in found if not any(one[0] <= code <= one[-1] for one in ranges)} == set()
    assert {end for one in ranges for end in one} <= found


def test_every_dependency_has_a_line() -> None:
    metadata = sorted((ROOT / "packages").glob("*/pyproject.toml"))
    wanted = [one for path in metadata for one in tomllib.loads(path.read_text())["project"].get("dependencies", ())]
    wanted += [
        line
        for name in ("test", "dev", "examples", "browser", "build", "docs", "frameworks")
        for line in text_of(f"requirements/{name}.in").split()
    ]
    localkube = tomllib.loads((ROOT / "packages/localkube/pyproject.toml").read_text())["project"]
    wanted += localkube["optional-dependencies"]["gpu"]
    named = words(row[0] for row in rows("docs/adr/0002-dependencies.md", "## At run time"))
    named |= words(row[0] for row in rows("docs/adr/0002-dependencies.md", "## For tests and development"))
    own = {"kuberuntime", "localkube", "leaderworkerset"}
    assert {re.split(r"[=<>]", one)[0] for one in wanted} - own == named


def test_every_benchmark_is_documented_and_run_by_make() -> None:
    named = [re.findall(r"`bench\.([\w ]+)", row[0])[0].split() for row in rows("bench/README.md", "# Benchmarks")]
    commands = {path.stem for path in (ROOT / "bench").glob("*.py") if '__name__ == "__main__"' in path.read_text()}
    subjects = {name for name in commands if hasattr(import_module(f"bench.{name}"), "BENCHMARKS")}
    single = commands - subjects
    several = {(name, one) for name in subjects for one in import_module(f"bench.{name}").BENCHMARKS}
    assert {tuple(words) for words in named} == several | {(name,) for name in single - {"bare"}}
    runs = {words[: 1 + (words[0].removeprefix("bench.") in subjects)] for words in (*everything.ALL, *everything.ONCE)}
    first = list(dict.fromkeys(tuple(words) for words in named))[: len(runs)]
    assert runs == {(f"bench.{name}", *rest) for name, *rest in first}
    assert len(subjects | single) <= 10


def test_documented_controllers_of_metrics_exist() -> None:
    cell = next(row[1] for row in rows("docs/reference/manager.md", "## Metrics") if "reconcile_total" in row[0])
    running = {spec.name for kind in managed_kinds("built-in").kinds for spec in kind.controllers}
    assert running | {"built-in"} == set(re.findall(r"`([\w-]+)`", cell))


def test_own_metrics_and_conditions_are_in_the_reference() -> None:
    """`tests/kubernetes/manager/test_metrics.py` compares the served metrics."""
    cells = {row[0].strip("`"): row[-1] for row in rows("docs/reference/manager.md", "## Metrics")}
    sources = [
        path.read_text()
        for path in (ROOT / "packages/leaderworkerset/src/leaderworkerset").rglob("*.py")
        if path.parent.name != "install"
    ]
    named = {name for text in sources for name in re.findall(r'"(lws_[a-z_]+)"', text)}
    assert {name for name in named if not {name, f"{name}_total"} & cells.keys()} == set()
    assert re.findall(r"`(\w+)`", cells["lws_leaderworkersets"]) == [one.type for one in CONDITIONS]


def test_documented_gang_schedulers_can_be_selected() -> None:
    values = [row[0] for row in rows("docs/how-to/gang-scheduling.md", "## Turn it on")]
    assert re.findall(r"`([\w-]+)`", " ".join(values)) == [*GANG_PROVIDERS]


def test_front_page_shows_the_manifest_of_the_demo() -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", text_of("README.md"), re.DOTALL)
    assert yaml.safe_load(shown) == yaml.safe_load(text_of("examples/allreduce/lws.yaml"))
    (printed,) = re.findall(r"includes:\n\n```\n(.*?)```", text_of("README.md"), re.DOTALL)
    assert set(printed.splitlines()) <= {line.text for line in record_run.load(record_run.TEXT.read_text())}
    assert len(text_of("README.md").split()) <= 600


def test_first_steps_show_their_manifest() -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", text_of("docs/how-to/first-steps.md"), re.DOTALL)
    assert yaml.safe_load(shown) == yaml.safe_load(text_of("docs/recording/web.yaml"))


def test_numbers_of_the_front_page_are_measured() -> None:
    measured = text_of("docs/explanation/performance.md")
    for what, number in rows("README.md", "## Numbers"):
        assert re.search(rf"^\| {re.escape(what)} \|.*\| {re.escape(number)} \|", measured, re.MULTILINE), what


def test_documented_errors_of_the_client_can_be_imported() -> None:
    named = set(re.findall(r"`(\w+Error)`", text_of("docs/how-to/python-client.md"))) - {"TimeoutError"}
    assert named <= {*client.__all__}
    assert all(issubclass(getattr(client, name), Exception) for name in named)


def test_client_page_lists_every_field() -> None:
    named = set(re.findall(r"`(\w+)`", text_of("docs/how-to/python-client.md")))
    assert {field.name for made in (client.Manifest, client.Container) for field in fields(made)} <= named


def test_documented_request_limits_equal_the_api_server() -> None:
    limits = {row[0]: row[1] for row in rows("docs/explanation/security-limits.md", "## Limits")}
    assert (
        limits["body of a request to the embedded API server"] == f"{BODY_LIMIT / MEBIBYTE:g} MiB in {BODY_SECONDS:g} s"
    )
    assert limits["an object in the embedded API server"].startswith(f"{LARGEST / MEBIBYTE:g} MiB")


def test_commands_and_options_of_scripts_are_in_the_reference() -> None:
    reference = text_of("docs/reference/cli.md")
    commands = set(re.findall(r"lws ([a-z-]+)", reference))
    options = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", reference)) | {"--help", "--version"}
    lines = [line for page in SCRIPTS for line in re.findall(r"^(?:\$ )?lws (.*)$", page.read_text(), re.MULTILINE)]
    asked = [line.partition(" #")[0].partition(" -- ")[0] for line in lines]
    assert len(asked) > 60
    assert {word for line in asked for word in re.findall(r"(?<![\w-])--[a-z][\w-]*", line)} <= options
    assert {line.split()[0] for line in asked} <= commands


def test_product_controllers_write_only_by_plans() -> None:
    names = ("leaderworkerset/controllers", "leaderworkerset/core", "lwsctl/diagnosis", "lwsctl/rollout")
    folders = [ROOT / "packages" / name.partition("/")[0] / "src" / name for name in names]
    texts = {path: path.read_text() for folder in folders for path in folder.rglob("*.py")}
    assert [path for path, text in texts.items() if WRITES.search(text)] == []
    assert WRITES.search(text_of("packages/kuberuntime/src/kuberuntime/controller/executor.py"))


def test_product_imports_localkube_only_in_documented_modules() -> None:
    product = ROOT / "packages/lwsctl/src/lwsctl"
    importing = {
        path
        for path in product.rglob("*.py")
        if re.search(r"^ *(from|import) localkube", path.read_text(), re.MULTILINE)
    }
    assert {str(path.relative_to(product)) for path in importing if path.parent != product / "cli/local"} == set(
        re.findall(r"these modules\s+and `([\w/.]+)` import `localkube`", text_of("docs/how-to/extend.md"))
    )


def test_every_folder_of_tests_is_described() -> None:
    folders = {path.relative_to(ROOT).parts[1] for path in (ROOT / "tests").rglob("test_*.py")}
    named = {folder for row in rows("CONTRIBUTING.md", "## Tests") for folder in re.findall(r"`tests/(\w+)", row[0])}
    assert {folder for folder in folders if (ROOT / "tests" / folder).is_dir()} <= named
