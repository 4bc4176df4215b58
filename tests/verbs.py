"""Runs a user's commands for two LeaderWorkerSets as one script, from apply to delete.

It runs on every cluster. Steps that reach into containers need a kubelet, which a control plane alone does not have;
they are marked.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ANY = -1
"""Matches any exit code."""

SERVE = "echo rank $LWS_WORKER_INDEX says hello; exec sleep 3600"


def manifest(name: str, image: str = "app:1", *, groups: int = 2) -> str:
    """Return a LeaderWorkerSet with groups of two pods."""
    container: dict[str, Any] = {"name": "main", "image": image, "command": ["sh", "-c", SERVE]}
    rolling = {"rollingUpdateConfiguration": {"maxUnavailable": 2}}
    template = {"size": 2, "workerTemplate": {"spec": {"containers": [container]}}}
    obj = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name},
        "spec": {"replicas": groups, "rolloutStrategy": rolling, "leaderWorkerTemplate": template},
    }
    return json.dumps(obj)


STUCK = json.dumps(
    json.loads(manifest("stuck", groups=1))
    | {
        "spec": {
            "replicas": 1,
            "leaderWorkerTemplate": {
                "size": 2,
                "workerTemplate": {
                    "spec": {
                        "containers": [
                            {
                                "name": "main",
                                "image": "app:1",
                                "command": ["sleep", "60"],
                                "resources": {"requests": {"cpu": "9000"}},
                            }
                        ]
                    }
                },
            },
        }
    }
)


@dataclass(frozen=True)
class Step:
    """A command with its arguments, its expected output or error as a pattern, and its exit code."""

    words: tuple[str, ...]
    shows: str
    code: int = 0
    needs_kubelet: bool = False

    def check(self, code: int, printed: str) -> None:
        """Fail if the command does not have the expected result."""
        assert self.code in {code, ANY}, f"lws {' '.join(self.words)} ended with {code}:\n{printed}"
        found = re.search(self.shows, printed, re.MULTILINE)
        assert found, f"lws {' '.join(self.words)} does not show {self.shows!r}:\n{printed}"


def script(directory: Path) -> Iterator[Step]:
    """Yield the steps. Their input files are copied to `directory`."""
    files = {"web": manifest("web"), "newer": manifest("web", "app:2"), "stuck": STUCK}
    for name, text in files.items():
        (directory / f"{name}.json").write_text(text)
    (directory / "sent.txt").write_text("sent\n")
    yield Step(("apply", "-f", f"{directory}/web.json"), r"^leaderworkerset/web created$")
    yield Step(("wait", "web", "--timeout=120"), r"^web is ready$")
    yield Step(("get",), r"^web +2 +2 +2 ")
    yield Step(("get", "web/1/1"), r"^1 +1 +web-1-1 +Running")
    yield Step(("get", "web/9"), r"^error: web/9 does not exist; web has 2 groups of 2 ranks$", code=1)
    yield Step(("wait", "web/0"), r"^error: lws wait does not support groups; specify web$", code=2)
    yield Step(("get", "web", "-o", "name"), r"^leaderworkerset.leaderworkerset.x-k8s.io/web$")
    yield Step(("get", "web", "--not-ready"), r"^All ranks are ready\.$")
    yield Step(("tree", "web"), r"^└─ group 1 +2/2 +ready")
    yield Step(("describe", "web"), r"^Groups: +2 desired, 2 ready, 2 up to date$")
    yield Step(("describe", "web/0/1"), r"^Pod: +web-0-1$")
    yield Step(("events", "web/0"), r"Scheduled +pod/web-0")
    yield Step(("events", "web", "-o", "json", "--since", "1h"), r'"reason":"SuccessfulCreate"')
    yield Step(("logs", "web", "--rank", "1", "--grep", "hello$"), r"^1/1 rank 1 says hello$", needs_kubelet=True)
    yield Step(("logs", "web/0/0", "--tail", "1"), r"^rank 0 says hello$", needs_kubelet=True)
    yield Step(("exec", "web/1/1", "--", "sh", "-c", "exit 7"), "", code=7, needs_kubelet=True)
    yield Step(("cp", f"{directory}/sent.txt", "web/0:/tmp/got.txt"), r"^copied to 2 ranks$", needs_kubelet=True)
    yield Step(("exec", "web/0/1", "--", "cat", "/tmp/got.txt"), r"^sent$", needs_kubelet=True)
    yield Step(
        ("cp", "web/0/1:/tmp/got.txt", f"{directory}/back.txt"), r"^copied 1 file from 1 rank$", needs_kubelet=True
    )
    yield Step(("cp", "web:/tmp/no-such", f"{directory}/all"), r"no-such", code=1, needs_kubelet=True)
    yield Step(("explain", "web"), r"web")
    yield Step(("scale", "web", "--replicas", "3"), r"^web scaled from 2 to 3 groups$")
    yield Step(("wait", "web", "--for", "replicas=3", "--timeout=120"), r"^web has 3 ready groups$")
    yield Step(("apply", "-f", f"{directory}/newer.json"), r"^leaderworkerset/web configured")
    yield Step(("rollout", "status", "web", "--timeout=120"), r"web")
    yield Step(("rollout", "history", "web"), r"^ *2\b")
    yield Step(("rollout", "diff", "web"), r"app:2")
    yield Step(("rollout", "undo", "web"), r"web")
    yield Step(("wait", "web", "--timeout=120"), r"^web is ready$")
    yield Step(("restart", "web/1", "--timeout=120"), r"web")
    yield Step(("apply", "-f", f"{directory}/stuck.json"), r"^leaderworkerset/stuck created$")
    yield Step(
        ("wait", "stuck", "--timeout=4"),
        r"^error: timed out waiting for stuck after 4 s: 0 of 1 group ready; stuck-0 .*cpu",
        code=124,
    )
    yield Step(("tree", "--not-ready"), r"^   ├─ 0 stuck-0 .*cpu")
    no_log = r"^error: stuck-0( and 1 more pod have| has) no log yet \(Pending\): .*cpu"
    yield Step(("logs", "stuck"), no_log, code=1)
    yield Step(("explain", "stuck"), r"LWS-E\d+", code=ANY)
    yield Step(("explain",), r"^stuck is stuck \(LWS-E036\): (.*\n)+1 of 2 sets healthy: web$", code=4)
    yield Step(("delete", "stuck", "web", "--timeout=120"), r"^leaderworkerset/web deleted$")
    yield Step(("wait", "web", "--for", "delete", "--timeout=120"), r"^web is deleted$")
    yield Step(("get",), r"^No LeaderWorkerSets found in namespace \S+\.")
