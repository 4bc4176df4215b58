"""Manages one run of a container, with its process, its log, and its tasks for start, hooks and probes."""

import asyncio
from pathlib import Path
from typing import Final

from kuberuntime.objects import errorlines
from localkube.kubelet.container.launch import Launch
from localkube.kubelet.logfiles import logreader
from localkube.kubelet.logfiles.logwriter import LogWriter
from localkube.kubelet.processes.runner import ContainerSpec, Exit

LONGEST_MESSAGE: Final = 4096
"""The maximum size of a termination message in bytes, as in Kubernetes."""

FALLBACK_LINES: Final = 80
FALLBACK_BYTES: Final = 2048
"""The size of the log that `FallbackToLogsOnError` uses, in bytes, as in Kubernetes."""

QUOTED_LINES: Final = 10
JUDGED_BYTES: Final = 64 * 1024
"""The number of lines that `quote_failures` quotes from other containers, and its search limit in bytes."""


class ContainerRun:
    """The run with number `log.run` of one container of a sandbox."""

    def __init__(self, sandbox_id: str, launch: Launch, log: LogWriter, termination_file: Path) -> None:
        self.name: str = launch.container["name"]
        self.id = f"{sandbox_id}-{self.name}-{log.run}"
        self.sandbox_id = sandbox_id
        self.launch = launch
        self.log = log
        self.is_launched = False
        self.pid = 0
        self.cores = 0.0
        self.exit: Exit | None = None
        self.last_problem = ""
        self.excess = ""
        self.tasks: set[asyncio.Task[None]] = set()
        self.hook: asyncio.Task[None] | None = None
        self._termination_file = termination_file

    def spec(self) -> ContainerSpec:
        """Return the spec for the runner."""
        launch = self.launch
        return ContainerSpec(
            id=self.id,
            sandbox_id=self.sandbox_id,
            argv=launch.argv,
            env=launch.env,
            stdout=self.log.stdout,
            stderr=self.log.stderr,
            cwd=launch.cwd,
            mounts=launch.mounts,
            root=launch.root,
            run_as_user=launch.user,
            run_as_group=launch.group,
            read_only_root=launch.read_only_root,
            stub_ports=launch.stub_ports,
        )

    def close(self) -> None:
        """Close the log and cancel all tasks, after the process has exited or if it was never started."""
        for task in self.tasks:
            task.cancel()
        self.log.close()

    def message(self, ending: Exit, log_directory: Path, *, quote: bool = False) -> str:
        """Return the container's termination message, from its message file or the end of its log.

        The log is used if the container failed without a message, and its policy says so or `quote` is set. It begins
        with `excess`, for which the container was ended.
        """
        content = _tail_of(self._termination_file)
        if not content and ending.code != 0:
            if self.launch.container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
                content = logreader.last_lines(log_directory, self.log.run, FALLBACK_LINES, FALLBACK_BYTES)
            elif quote:
                content = _last_lines(
                    logreader.last_lines(log_directory, self.log.run, errorlines.JUDGED, JUDGED_BYTES)
                )
        return "\n".join(filter(None, [self.excess, content.decode(errors="replace")]))


def _last_lines(log: bytes) -> bytes:
    """Return the last lines of a log, preceded by its first error if they do not include it."""
    lines = errorlines.error_excerpt(log.decode(errors="replace").splitlines(), QUOTED_LINES) if log else []
    longest = LONGEST_MESSAGE // max(len(lines), 1) - 1
    is_long = sum(len(line) + 1 for line in lines) > LONGEST_MESSAGE
    return "".join(f"{line[:longest] if is_long else line}\n" for line in lines).encode()[-LONGEST_MESSAGE:]


def fresh_termination_file(path: Path) -> None:
    """Create an empty file that all users in the container can write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    path.chmod(0o666)


def _tail_of(path: Path) -> bytes:
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - LONGEST_MESSAGE, 0))
        return file.read(LONGEST_MESSAGE)
