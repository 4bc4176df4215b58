"""Writes container logs from the pipes of a process to files with a limited size.

Every run of a container has a number, and its log is cut into segments: `logs/<container>/<run>-<segment>.log`.
A segment ends at 10 MiB; the newest five of a run, and the newest two runs, are kept. The numbers of runs continue
from those on disk, also after a restart of the cluster.
"""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import structlog
from msgspec import Struct

from kuberuntime.clock import Clock
from localkube.kubelet.logfiles.logformat import Framer
from localkube.podaccess import Stream

SEGMENT_SIZE: Final = 10 * 1024 * 1024
SEGMENTS_KEPT: Final = 5
RUNS_KEPT: Final = 2
READ_SIZE: Final = 16 * 1024
"""The number of bytes per read, which can contain 16,384 lines. Between two reads, other tasks of the cluster run."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Segment(NamedTuple):
    """One log file of a container. Log files are sorted by age."""

    run: int
    number: int
    path: Path


def segments(directory: Path) -> list[Segment]:
    """Return the log files of a container, oldest first."""
    log_files = []
    for path in directory.glob("*-*.log") if directory.is_dir() else ():
        run, _, number = path.stem.partition("-")
        log_files.append(Segment(int(run), int(number), path))
    return sorted(log_files)


class _LogInput(Struct):
    descriptor: int
    framer: Framer


class LogWriter:
    """The log of one run of a container. Pass `stdout` and `stderr` to the process, and close them afterwards."""

    def __init__(self, directory: Path, clock: Clock, *, segment_size: int = SEGMENT_SIZE) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._clock = clock
        self._segment_size = segment_size
        self._segment = 0
        self._size = 0
        self._file: int | None = None
        self._is_losing = False
        self.run = _start_run(directory)
        os.close(self._open_file())
        self.changes = asyncio.Event()
        self.is_closed = False
        self._inputs: list[_LogInput] = []
        self.stdout = self.stderr = -1
        try:
            self.stdout = self._open("stdout")
            self.stderr = self._open("stderr")
        except OSError:
            self.close()
            raise

    @property
    def segment(self) -> int:
        """Return the number of the current segment."""
        return self._segment

    def close_process_ends(self) -> None:
        """Close the copies of the process's pipe ends in this process."""
        for descriptor in (self.stdout, self.stderr):
            if descriptor >= 0:
                os.close(descriptor)
        self.stdout = self.stderr = -1

    def write_message(self, text: str) -> None:
        """Write a message of the kubelet."""
        self._append(Framer("stderr").feed(f"{text}\n".encode(), self._clock.now()))

    def close(self) -> None:
        """Read the remaining output from the pipes, and close the log, after the process has exited."""
        self.close_process_ends()
        for stream in list(self._inputs):
            while stream in self._inputs and self._read(stream):
                pass
            self._close_input(stream)
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self.is_closed = True
        self._notify()

    def _notify(self) -> None:
        """Wake the current waiters. Later waiters wait for the next change."""
        self.changes.set()
        self.changes.clear()

    def _open(self, stream: Stream) -> int:
        reader, writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(reader, False)
        source = _LogInput(reader, Framer(stream))
        self._inputs.append(source)
        asyncio.get_running_loop().add_reader(reader, self._read, source)
        return writer

    def _read(self, source: _LogInput) -> bool:
        """Read a chunk of the output. Return whether there was any."""
        try:
            data = os.read(source.descriptor, READ_SIZE)
        except BlockingIOError:
            return False
        if not data:
            self._close_input(source)
            return False
        self._append(source.framer.feed(data, self._clock.now()))
        return True

    def _close_input(self, source: _LogInput) -> None:
        if source in self._inputs:
            self._inputs.remove(source)
            asyncio.get_running_loop().remove_reader(source.descriptor)
            os.close(source.descriptor)
            self._append(source.framer.flush(self._clock.now()))

    def _open_file(self) -> int:
        """Open the current segment. Its path is a string, because `pathlib` interns every name."""
        path = os.path.join(self._directory, f"{self.run}-{self._segment}.log")
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def _append(self, entries: bytes) -> None:
        """Write entries. If the disk is full, drop entries and log a warning, because the process must not block."""
        if not entries:
            return
        try:
            self._write(entries)
        except OSError as error:
            if not self._is_losing:
                log.warning("log lines of a container were dropped", directory=str(self._directory), error=str(error))
            self._is_losing = True
        else:
            self._is_losing = False
            self._notify()

    def _write(self, entries: bytes) -> None:
        if self._file is not None and self._size >= self._segment_size:
            os.close(self._file)
            self._file = None
            self._segment += 1
            _remove([segment for segment in segments(self._directory) if segment.run == self.run][: 1 - SEGMENTS_KEPT])
        if self._file is None:
            self._file = self._open_file()
            self._size = 0
        _write_all(self._file, entries)
        self._size += len(entries)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _start_run(directory: Path) -> int:
    """Return the number of a new run. Only the log of the previous run is retained."""
    existing = segments(directory)
    run = existing[-1].run + 1 if existing else 0
    _remove([segment for segment in existing if segment.run <= run - RUNS_KEPT])
    return run


def _remove(old: Sequence[Segment]) -> None:
    for segment in old:
        segment.path.unlink(missing_ok=True)
