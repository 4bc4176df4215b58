"""Represents a child of the launcher: the init process of a container, or the parent of a command in it."""

import os
import signal
from contextlib import suppress

from localkube.kubelet.processes import processtree

from . import containerinit
from .kernel.syscalls import read_pid
from .launcherconnection import ConnectionClosedError, LauncherConnection, Message
from .launchspecs import Container, Pod


class ChildProcess:
    """A child from its fork to its exit, with its reports, and the request that waits for them."""

    def __init__(
        self, key: str, pod: Pod, container: Container, child: tuple[int, LauncherConnection], reply: int
    ) -> None:
        self.key = key
        self.pod = pod
        self.container = container
        self.pid, self.link = child
        self.link.sock.setblocking(False)
        self.reply: int | None = reply
        self.refused: str | None = None
        self.exit: tuple[int, int] | None = None
        self._main: int | None = None  # a pidfd, on systems that support it
        self._main_pid: int | None = None  # on the host
        self._pending_signal = False

    @property
    def is_started(self) -> bool:
        """Return whether the process was started."""
        return self._main_pid is not None

    def take_reports(self) -> bool:
        """Read the current reports of the child. Return whether there can be more."""
        try:
            while True:
                for report in self.link.receive():
                    self._process_report(report.message, report.fds)
        except BlockingIOError:
            return True
        except ConnectionClosedError:
            return False

    def take_response(self) -> Message | None:
        """Return the response to the request for this process once, as soon as it is available."""
        if self.reply is None:
            return None
        if self.is_started:
            response: Message = {"reply": self.reply, "pid": self._main_pid}
        elif self.refused is not None:
            response = {"reply": self.reply, "error": self.refused}
        else:
            return None
        self.reply = None
        return response

    def record_exit(self, status: int) -> tuple[int, int]:
        """Record the exit of the child. Return the exit code and the signal of the process."""
        self.link.close()
        if self._main is not None:
            os.close(self._main)
        if not self.is_started and self.refused is None:
            self.refused = "the launcher's child process exited before the command started"
        code = os.waitstatus_to_exitcode(status)
        return self.exit or ((code, 0) if code >= 0 else (128 - code, -code))

    def send_signal(self, number: int, *, everything: bool) -> None:
        """Signal the process or all its descendants. A process that is not yet started receives the signal later."""
        if not self.is_started:
            self._pending_signal = self._pending_signal or number == signal.SIGKILL
            return
        main = self._main_pid if self._main is None else read_pid(self._main)
        others = processtree.descendants([self.pid], processtree.read()) if everything else []
        self._signal_main(number)
        for pid in others:
            if pid != main:
                containerinit.send_signal(pid, number)

    def _signal_main(self, number: int) -> None:
        if self._main is None:
            containerinit.send_signal(self._main_pid or self.pid, number)
            return
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._main, number)

    def _process_report(self, message: Message, fds: list[int]) -> None:
        match message["event"]:
            case "started":
                self._main = fds[0] if fds else None
                self._main_pid = message["pid"]
                if self._pending_signal:
                    self._signal_main(signal.SIGKILL)
            case "refused":
                self.refused = message["text"]
            case "exit":
                self.exit = (message["code"], message["signal"])
