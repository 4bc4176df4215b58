"""Reads the state of the GPUs of this machine for `lws doctor`."""

import os

from localkube import cluster
from localkube.cluster import GpuReport

__all__ = ["GpuReport", "report"]


def report() -> GpuReport | None:
    """Return the state of the GPUs that this process may use, or None if there are no GPUs."""
    return cluster.report_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"))
