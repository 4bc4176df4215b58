"""Reads the output of `lws explain` on a cluster, and waits until a cause is reported."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from tests.controlplane import build
from tests.integration.clusters.objects import pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State
from tests.integration.lwsctl.test_commands import session_of

from kuberuntime import timeouts
from kuberuntime.clock import SystemClock
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS, VALIDATING_WEBHOOK_CONFIGURATIONS, Resource
from lwsctl.cli import targets
from lwsctl.cli.sets.diagnoses import explain, next_step_commands
from lwsctl.cli.targets import parse
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.observation.diagnosisinput import diagnose_one
from lwsctl.observation.lists import Lists

ASKED_AGAIN: Final = 0.3
"""The interval between two explanations in seconds. Each explanation lists a dozen kinds."""

NAMED_WITHIN: Final = 5.0
"""The time in seconds after which the fault is visible."""

HELD: Final = "tests.example.com/held"

COMMAND: Final = re.compile(r"\b(?:kubectl|lws) .+")
"""The command at the end of a remedy step."""


def remedy(code: str) -> pytest.MarkDecorator:
    """Mark a test that applies the remedy for this cause. Afterwards, the LeaderWorkerSet must become ready."""
    return pytest.mark.parametrize("code", [code])


class LateClock(SystemClock):
    """A clock that is ahead by this duration, for explanations of the current state at a later time."""

    def __init__(self, late: timedelta) -> None:
        self._late = late

    def now(self) -> datetime:
        """Return a later time."""
        return super().now() + self._late


async def diagnosis(space: LiveScenario, target: str = "web", *, late: timedelta = timedelta()) -> Diagnosis:
    """Return the explanation, now or after `seconds` without a change."""
    session = session_of(space)
    if not late:
        (told,) = await explain(session, parse(target))
        return told
    chosen = parse(target)
    shown = await targets.read_view(session, await targets.find(session, chosen.name))
    return await diagnose_one(Lists(space.client), shown, chosen, next_step_commands(session), LateClock(late))


async def typed(space: LiveScenario, *words: str, code: int = 0) -> str:
    """Run an `lws` command until it exits with this code. Return its output."""
    environment = os.environ | {"KUBECONFIG": str(space.cluster.kubeconfig)}
    pipe, both = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "lwsctl.cli", *words, env=environment, stdout=pipe, stderr=both
    )
    output, _ = await process.communicate()
    assert process.returncode == code, output.decode()
    return output.decode()


async def follow(space: LiveScenario, told: Diagnosis, words: str) -> None:
    """Run the command in the step that contains these words, as `lws explain` prints it, in a shell."""
    (step,) = [step for step in told.steps if words in step]
    (line,) = COMMAND.findall(step)
    programs = [str(Path(sys.executable).parent)]
    if line.startswith("kubectl"):
        if not build.is_built(build.CHOSEN):
            pytest.skip("kubectl is not built: `make test-kubernetes` builds it")
        programs.append(str(build.assets(print)))
    paths = os.pathsep.join([*programs, os.environ["PATH"]])
    environment = os.environ | {"KUBECONFIG": str(space.cluster.kubeconfig), "PATH": paths}
    pipe, both = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
    process = await asyncio.create_subprocess_shell(line, env=environment, stdout=pipe, stderr=both)
    output, _ = await process.communicate()
    assert process.returncode == 0, f"{line}: {output.decode()}"


async def named(
    space: LiveScenario, code: str, target: str = "web", *, seconds: float = NAMED_WITHIN, late: timedelta = timedelta()
) -> Diagnosis:
    """Wait until `lws explain` returns the code, now or at a `later` time."""
    told = await diagnosis(space, target, late=late)
    try:
        async with timeouts.within(seconds):
            while told.code != code:
                await asyncio.sleep(ASKED_AGAIN)
                told = await diagnosis(space, target, late=late)
    except TimeoutError:
        raise AssertionError(f"not {code}, but {told}") from None
    return told


def warned(words: str) -> Any:
    """Return a condition that is true if a Warning event contains these strings."""

    def expectation(state: State) -> None:
        notes = [str(one.get("note")) for one in state.events.values() if one.get("type") == "Warning"]
        assert any(words in note for note in notes), notes

    return expectation


def unschedulable(words: str, count: int = 1) -> Any:
    """Return a condition that is true if `count` pods are unschedulable for a reason with these strings."""

    def expectation(state: State) -> None:
        told = [meta.find_condition(pod, "PodScheduled") or {} for pod in state.pods.values()]
        found = [one for one in told if one.get("status") == "False" and words in str(one.get("message"))]
        assert len(found) >= count, told

    return expectation


def of_kubernetes(space: LiveScenario, lacks: str = "such admission") -> None:
    """Skip a test of features that the embedded API server does not support."""
    if space.cluster.name == "embedded":
        pytest.skip(f"the embedded API server has no {lacks}")


def template(**fields: Any) -> JSONObject:
    """Return the templates of a group whose pods have these fields."""
    return {"workerTemplate": pod_template(**fields)}


def asking(**requests: str) -> JSONObject:
    """Return the templates of a group whose containers request these amounts."""
    found = pod_template()
    amounts = {name.replace("__", "/").replace("_", "."): amount for name, amount in requests.items()}
    found["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return {"workerTemplate": found}


@asynccontextmanager
async def unreachable_webhook(
    space: LiveScenario, resource: Resource = PODS, *, subresource: str = "", operation: str = "CREATE"
) -> AsyncIterator[None]:
    """Configure an unreachable webhook for pods in the namespace, or for a different kind."""
    plural = f"{resource.plural}/{subresource}" if subresource else resource.plural
    rule = {"apiGroups": [resource.group], "apiVersions": [resource.version], "resources": [plural]}
    name = f"unreachable-{space.namespace}"
    hook = {
        "name": "unreachable.example.com",
        "clientConfig": {"url": "https://127.0.0.1:9/"},
        "rules": [rule | {"operations": [operation]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": space.namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 2,
    }
    configuration = {
        "apiVersion": VALIDATING_WEBHOOK_CONFIGURATIONS.api_version,
        "kind": VALIDATING_WEBHOOK_CONFIGURATIONS.kind,
        "metadata": {"name": name},
        "webhooks": [hook],
    }
    await space.client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, configuration)
    try:
        yield
    finally:
        await space.client.delete(VALIDATING_WEBHOOK_CONFIGURATIONS, ObjectKey("", name))
