"""Tests runs that complete, report progress, or are recorded, and ranks that wait for each other."""

import subprocess
from pathlib import Path

from testkit.repository import ROOT
from tests.node.images import EXAMPLES, PRODUCT
from tests.node.objects import PREFIX, WAIT, container, leaderworkerset, pod
from tests.node.place import LWS, Place

from leaderworkerset import rendezvous

SHELL = Path(rendezvous.__file__).parent / "rendezvous.sh"
STEPS = 'for i in 1 2 3; do echo "::lws progress step=$i total=3"; sleep 1; done'


def condition(place: Place, name: str, kind: str) -> bool:
    """Return whether the status of a LeaderWorkerSet condition is True."""
    obj = place.get("LeaderWorkerSet", name) or {}
    found = obj.get("status", {}).get("conditions", [])
    return any(one["type"] == kind and one["status"] == "True" for one in found)


def test_run_completes_while_its_logs_are_followed(place: Place) -> None:
    leader = pod(container(f"echo started; until [ -e /tmp/go ]; do sleep 0.2; done; {STEPS}; echo result 42; sleep 2"))
    place.apply(leaderworkerset("job", pod(), leaderTemplate=leader, annotations={"run-to-completion": "true"}))
    with place.running([*LWS, "logs", "--namespace", place.name, "--follow", "job"]) as process:
        await_lines(process, ["started"])
        place.exec("job-0", "touch", "/tmp/go")
        await_lines(process, ["result 42"])
    place.lws("wait", "job", "--for", "done", "--timeout=240")
    assert condition(place, "job", "Complete")
    lost = "its node has deleted its log"
    place.until(lambda: lost in place.ended("logs", "job", "--follow").stderr, "the removal of the leader's log")


def test_progress_of_a_leader_is_shown(place: Place) -> None:
    leader = pod(container(f"{STEPS}; {WAIT}"))
    obj = leaderworkerset("steps", pod(), leaderTemplate=leader, annotations={"follow-progress": "true"})
    place.apply(obj)
    place.until(lambda: "step 3 of 3" in place.lws("get", "steps"), "the last step")


def test_hang_is_named(place: Place) -> None:
    leader = pod(container(f"{STEPS}; {WAIT}"))
    obj = leaderworkerset("hung", pod(), leaderTemplate=leader, annotations={"progress-timeout": "5s"})
    place.apply(obj)
    cause = place.until(lambda: hang(place, "hung"), "the cause of a hang")
    assert "hung-0" in cause
    assert "()" not in cause


def hang(place: Place, name: str) -> str:
    """Return the explanation of a hanging group, or an empty string if there is none."""
    text = place.ended("explain", name).stdout
    return text if "LWS-E076" in text else ""


def test_failure_is_recorded_with_its_logs(place: Place) -> None:
    script = f'[ "$LWS_WORKER_INDEX" = 1 ] && {{ sleep 3; echo out of memory; exit 3; }}; {WAIT}'
    place.apply(leaderworkerset("recorded", pod(container(script))))
    place.until(lambda: "exit code 3" in place.ended("history", "recorded").stdout, "an episode")
    assert "out of memory" in place.lws("history", "recorded/0/1")


def test_allreduce_example_completes(place: Place) -> None:
    apply_example(place, "allreduce")
    with place.running([*LWS, "logs", "--namespace", place.name, "--follow", "allreduce"]) as process:
        await_lines(process, [f"{group}/0 all-reduce verified: 3 rounds over 4 ranks" for group in (0, 1)])


def test_the_example_of_tensor_parallelism_answers(place: Place) -> None:
    """The script on the page compares each group's response with the response of the unsplit model."""
    apply_example(place, "tensor-parallel")
    place.await_ready("tensor-parallel", 2, 8)
    for group in (0, 1):
        answer = place.exec(f"tensor-parallel-{group}", "sh", "-c", "python3 check.py http://$POD_IP:8080")
        assert answer.startswith("4 ranks answer as one"), answer


def apply_example(place: Place, name: str) -> None:
    """Apply the manifest of an example with a different image."""
    manifest = (ROOT / "examples" / name / "lws.yaml").read_text()
    place.kubectl("apply", "--filename=-", text=manifest.replace(f"image: {name}", f"image: {EXAMPLES}"))


def await_lines(process: "subprocess.Popen[str]", wanted: list[str]) -> None:
    """Read the output of a command until it contains lines with these suffixes."""
    assert process.stdout is not None
    missing, seen = set(wanted), []
    for line in process.stdout:
        seen.append(line.strip())
        missing = {one for one in missing if not line.strip().endswith(one)}
        if not missing:
            return
    raise AssertionError(f"no {missing} among {seen}")


def test_python_ranks_meet(place: Place) -> None:
    python, meet = "/opt/lws/bin/python", "-m leaderworkerset.rendezvous all --timeout 200 --size 3"
    template = pod(container(f"{python} {meet} && echo met; {WAIT}", image=PRODUCT))
    place.apply(leaderworkerset("python", template, size=3))
    await_meeting(place, "python", 3)


def test_shell_ranks_meet(place: Place) -> None:
    place.kubectl("create", "configmap", "rendezvous", f"--from-file={SHELL}")
    serve = "mkdir -p /tmp/www; httpd -p 8080 -h /tmp/www"
    script = f"{serve}; sh /rendezvous/rendezvous.sh all --port 8080 --timeout 200 && echo met; {WAIT}"
    volumes = [{"name": "script", "configMap": {"name": "rendezvous"}}]
    place.apply(
        leaderworkerset("shell", pod(container(script, mounts={"script": "/rendezvous"}), volumes=volumes), size=3)
    )
    await_meeting(place, "shell", 3)


def await_meeting(place: Place, name: str, size: int) -> None:
    """Wait until each rank has printed that it found the other ranks."""

    def met() -> bool:
        printed = place.kubectl("logs", f"--selector={PREFIX}/name={name}", "--ignore-errors")
        return printed.count("met\n") == size

    place.until(met, f"{size} ranks that met")
