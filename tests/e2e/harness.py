"""Runs the user's command lines, and finds remaining processes and files."""

import json
import os
import select
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

from testkit import repository
from testkit.waiting import until

from kuberuntime.objects.meta import JSONObject

Running: TypeAlias = "subprocess.Popen[str]"

ROOT = repository.ROOT
LWS = [sys.executable, "-m", "lwsctl.cli"]
SECONDS = 90.0
KEPT = frozenset({"history", "ephemeral"})
"""Directories that are not deleted if a test fails."""


@dataclass(frozen=True)
class Shell:
    """Runs `lws` and other commands in the repository, with one environment and one directory for their files."""

    base: Path
    environment: Mapping[str, str]
    directory: Path = ROOT
    module: str = "lwsctl.cli"

    @property
    def state(self) -> Path:
        """Return the directory that contains the clusters."""
        return self.base / "state" / "lws"

    @property
    def program(self) -> list[str]:
        """Return the `lws` command line."""
        return [sys.executable, "-m", self.module]

    def lws(self, *words: str, code: int = 0, text: str | None = None) -> "subprocess.CompletedProcess[str]":
        """Run `lws` until it exits. Fail unless the exit code is `code`."""
        return self.run([*self.program, *words], code=code, text=text)

    def ended(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run `lws` until it exits, with any exit code."""
        return self.run([*self.program, *words], code=None)

    def run(
        self, words: Sequence[str], *, code: int | None = 0, text: str | None = None, limit: float = SECONDS
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command for at most `limit` seconds. Fail unless the exit code is `code` or `code` is None."""
        result = subprocess.run(
            words,
            env=self.environment,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=limit,
            input=text,
            check=False,
        )
        assert code in (None, result.returncode), (
            f"{words} ended with {result.returncode}:\n{result.stdout}\n{result.stderr}"
        )
        return result

    def start(self, *words: str) -> Running:
        """Start `lws`. Return the running process."""
        return subprocess.Popen(
            [*self.program, *words],
            env=self.environment,
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    @contextmanager
    def running(self, *words: str) -> Iterator[Running]:
        """Run `lws` until the context exits."""
        process = self.start(*words)
        try:
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=SECONDS)

    def processes(self, *entries: str) -> dict[int, str]:
        """Return the command lines of running processes that this shell started, by PID.

        Each of them has its home in its environment; `entries` of the environment choose among them.
        """
        wanted = [f"HOME={self.environment['HOME']}", *entries]
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and has_environment(entry, wanted):
                found[int(entry.name)] = command_line(entry)
        return found

    def mounts(self) -> list[str]:
        """Return the mounts on this machine below the shell's directory."""
        return [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(self.base) in line]

    def assert_nothing_is_left(self) -> None:
        """Fail if a process, a mount or a state directory of a run remains."""
        until(lambda: not self.processes(), f"the end of {self.processes()}", 5)
        assert self.mounts() == []
        kept = [path.name for path in self.state.glob("run-*") if {one.name for one in path.iterdir()} - KEPT]
        assert kept == []


def make_shell(base: Path) -> Shell:
    """Return the shell of a user who has never used `lws`."""
    home = base / "home"
    home.mkdir(parents=True)
    left_out = {"COLUMNS", "KUBECONFIG", "LINES", "LWS_STATE_HOME", "NO_COLOR", "VIRTUAL_ENV"}
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    scripts = sysconfig.get_path("scripts")
    own = {"HOME": str(home), "XDG_STATE_HOME": str(base / "state"), "TERM": "xterm"}
    return Shell(base, kept | own | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"})


def clean_up(shell: Shell) -> None:
    """Stop and delete clusters that are still running."""
    for place in filter(Path.is_dir, shell.state.iterdir()) if shell.state.exists() else ():
        shell.lws("down", place.name, "--delete")


@dataclass(frozen=True)
class LocalCluster:
    """A running embedded cluster, with commands for it."""

    shell: Shell
    name: str

    def lws(self, command: str, *words: str, code: int = 0, text: str | None = None) -> str:
        """Run a command until it exits. Return its output."""
        return self.shell.lws(command, f"--local={self.name}", *words, code=code, text=text).stdout

    def refused(self, command: str, *words: str, code: int = 1, text: str | None = None) -> str:
        """Run a command that must fail. Return its error message."""
        return self.shell.lws(command, f"--local={self.name}", *words, code=code, text=text).stderr

    def ended(self, command: str, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command until it exits, with any exit code."""
        return self.shell.ended(command, f"--local={self.name}", *words)

    def apply(self, *objects: JSONObject) -> None:
        """Apply objects."""
        self.lws("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def start(self, obj: JSONObject, wait: str = "ready") -> None:
        """Apply a LeaderWorkerSet, and wait until it is ready."""
        self.apply(obj)
        self.lws("wait", obj["metadata"]["name"], f"--for={wait}", "--timeout=30")

    def view(self, name: str) -> JSONObject:
        """Return the output of `lws get -o view` for a LeaderWorkerSet."""
        found: JSONObject = json.loads(self.lws("get", name, "-o", "view"))["items"][0]
        return found

    def until(self, name: str, wanted: Callable[[JSONObject], bool], seconds: float = 30) -> JSONObject:
        """Watch a LeaderWorkerSet until the condition is true. Return its view."""
        with self.shell.running("get", name, f"--local={self.name}", "--watch", "-o", "view") as watch:
            seen: JSONObject = {}
            for line in lines_of(watch, seconds):
                seen = json.loads(line)["items"][0]
                if wanted(seen):
                    return seen
        raise AssertionError(f"{name} is not as wanted after {seconds} s: {json.dumps(ranks(seen), indent=1)}")


def lines_of(process: Running, seconds: float) -> Iterator[str]:
    """Yield the lines that a process prints within `limit` seconds."""
    assert process.stdout is not None
    yield from _lines(process.stdout, seconds)


def first_note(process: Running, seconds: float = 30) -> str:
    """Wait for the first line on stderr, and return it. Later lines may be lost."""
    assert process.stderr is not None
    return next(_lines(process.stderr, seconds), "")


def _lines(stream: IO[str], seconds: float) -> Iterator[str]:
    descriptor = stream.fileno()
    deadline = time.monotonic() + seconds
    rest = b""
    while (left := deadline - time.monotonic()) > 0 and select.select([descriptor], [], [], left)[0]:
        piece = os.read(descriptor, 1 << 16)
        if not piece:
            return
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line.decode() for line in lines)


def lines_with(process: Running, words: str, count: int, seconds: float = 30) -> list[str]:
    """Wait for `count` lines that contain this string, and return them. Later lines may be lost."""
    others: list[str] = []
    found: list[str] = []
    for line in lines_of(process, seconds):
        (found if words in line else others).append(line)
        if len(found) == count:
            return found
    raise AssertionError(f"not {count} lines with {words!r} in {seconds} s: {found}, but: {others}")


def line_with(process: Running, words: str, seconds: float = 30) -> str:
    """Wait for a line that contains these strings, and return it."""
    return lines_with(process, words, 1, seconds)[0]


SELDOM = 0.5
"""The interval in seconds between two checks, each of which starts a process."""


def ranks(view: JSONObject) -> dict[str, JSONObject]:
    """Return the ranks in a view by `group/rank`."""
    return {f"{group['group']}/{rank['rank']}": rank for group in view["groups"] for rank in group["ranks"]}


def facts(view: JSONObject, field: str, group: int | None = None) -> dict[str, Any]:
    """Return one field of each rank by `group/rank`, for one group or for all groups."""
    return {place: rank[field] for place, rank in ranks(view).items() if group in (None, int(place.split("/")[0]))}


def is_whole(view: JSONObject) -> bool:
    """Return whether all ranks of all groups are ready."""
    return bool(view["groups"]) and all(rank["ready"] for rank in ranks(view).values())


def lws(name: str, container: JSONObject, *, replicas: int = 1, size: int = 1, **spec: Any) -> JSONObject:
    """Build a LeaderWorkerSet in which all ranks run the same container."""
    leader = {"leaderTemplate": template(spec.pop("leader"))} if "leader" in spec else {}
    restart = {"restartPolicy": spec.pop("restart")} if "restart" in spec else {}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "leaderWorkerTemplate": {"size": size, "workerTemplate": template(container), **leader, **restart},
            **spec,
        },
    }


def template(container: JSONObject) -> JSONObject:
    """Build a pod template with one container. `grace` is its termination grace period."""
    own = {key: value for key, value in container.items() if key != "grace"}
    period = {"terminationGracePeriodSeconds": container["grace"]} if "grace" in container else {}
    return {"spec": {"containers": [{"name": "rank", "image": "host", **own}], **period}}


def python(program: str, **fields: Any) -> JSONObject:
    """Build a container that runs a Python script."""
    return {"command": [sys.executable, "-u", "-c", program], **fields}


def shell_script(script: str, **fields: Any) -> JSONObject:
    """Build a container that runs a shell script."""
    return {"command": ["sh", "-c", script], **fields}


SLEEP: JSONObject = {"command": ["sleep", "1000"], "grace": 1}


def has_environment(process: Path, entries: Sequence[str]) -> bool:
    """Return whether a process has all these environment variables, or False if it has exited."""
    try:
        environment = (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return {entry.encode() for entry in entries} <= set(environment)


def command_line(process: Path) -> str:
    """Return the arguments of a process, or an empty list if it has exited."""
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
