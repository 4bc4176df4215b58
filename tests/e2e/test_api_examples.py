"""Tests the manifests in `examples/api`, each of which shows one feature.

Each becomes ready with two commands, or is rejected with a reason.
"""

import re
from pathlib import Path

import pytest
import yaml
from tests.e2e.harness import ROOT, Shell
from tests.e2e.pages import follow

from kuberuntime.objects.meta import JSONObject

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

EXAMPLES = ROOT / "examples/api"
FILES = sorted(EXAMPLES.rglob("*.yaml"))


def objects(file: Path) -> list[JSONObject]:
    return list(yaml.safe_load_all(file.read_text()))


def groups(obj: JSONObject) -> tuple[int, int]:
    """Return the groups and the ranks of a LeaderWorkerSet from the examples."""
    spec = obj["spec"]
    specs = [role["spec"] for role in spec["roles"]] if "roles" in spec else [spec]
    counts = [(part.get("replicas", 1), part["leaderWorkerTemplate"]["size"]) for part in specs]
    slices = spec.get("slices", 1)
    return slices * sum(count for count, _ in counts), slices * sum(count * size for count, size in counts)


def test_readme_lists_each_example_with_its_field() -> None:
    rows = re.findall(
        r"^\| \[[\w.-]+\]\(([\w./-]+)\) \| `([^`]+)` \| (.+) \|$", (EXAMPLES / "README.md").read_text(), re.MULTILINE
    )
    texts = {str(file.relative_to(EXAMPLES)): file.read_text() for file in FILES}
    assert {name: f"# {comment}" for name, _, comment in rows} == {
        name: text.splitlines()[0] for name, text in texts.items()
    }
    assert [name for name, field, _ in rows if field not in texts[name].partition("\n")[2]] == []


def test_examples_of_the_api_are_ready(shell: Shell) -> None:
    """A surge group of the rollout may exist until the rollout is complete."""
    printed = follow(shell, "examples/api/README.md")
    ends = re.findall(r"^(\d+) ranks in (\d+) groups are ready$", printed, re.MULTILINE)
    for (ranks, count), folder in zip(ends, ("leaderworkerset", "disaggregatedset"), strict=True):
        sets = [obj for file in (EXAMPLES / folder).iterdir() for obj in objects(file) if obj["kind"].endswith("Set")]
        least = [sum(numbers) for numbers in zip(*map(groups, sets), strict=True)]
        surplus = int(count) - least[0]
        assert surplus in ((0, 1) if folder == "leaderworkerset" else (0,))
        assert int(ranks) == least[1] + 2 * surplus
    assert "assumed: skipping scaledobject/queued-prefill: this cluster does not autoscale workloads" in printed
    shell.assert_nothing_is_left()


def test_example_of_a_gang_is_rejected_with_its_field(shell: Shell) -> None:
    refused = shell.lws("run", "-f", str(EXAMPLES / "scheduling/gang-scheduling.yaml"), "--stub", code=1).stderr
    assert "gang-scheduling.yaml:8: leaderworkerset/gang-scheduling: " in refused
    assert "spec.scheduling: Forbidden: requires the WorkloadAwareScheduling feature gate" in refused
