"""The errors that stop the execution of a plan (`executor.py`)."""

from collections.abc import Sequence

from kuberuntime.controller.writes import Write
from kuberuntime.errors import KubeError


class ExecutionError(KubeError):
    """A plan was not performed completely. `writes` are the writes before the failure."""

    def __init__(self, message: str, writes: Sequence[Write] = ()) -> None:
        super().__init__(message)
        self.writes = tuple(writes)


class ActionError(ExecutionError):
    """An action failed."""


class RequeueError(ExecutionError):
    """A replacement was computed from an object that has changed since."""


class PostponedError(ExecutionError):
    """A different writer reverts a write repeatedly, so the write waits for `seconds`."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class PlanError(ExecutionError):
    """The plan contains an error that no write can correct."""
