"""Defines the errors that stop the execution of a plan (`executor.py`)."""

from collections.abc import Sequence

from kuberuntime.controller.writes import Write
from kuberuntime.errors import KubeError


class ExecutionError(KubeError):
    """A plan was not completed. `writes` contains the writes that precede the failure."""

    def __init__(self, message: str, writes: Sequence[Write] = ()) -> None:
        super().__init__(message)
        self.writes = tuple(writes)


class ActionError(ExecutionError):
    """An action failed."""


class RequeueError(ExecutionError):
    """A replacement is based on an outdated object."""


class PostponedError(ExecutionError):
    """A different writer repeatedly reverts a write. The write is therefore delayed for `seconds`."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class PlanError(ExecutionError):
    """The plan contains an error that a write cannot correct."""
