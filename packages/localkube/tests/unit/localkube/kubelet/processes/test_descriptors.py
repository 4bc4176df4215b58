"""Tests the limit on open files."""

import resource
from collections.abc import Iterator

import pytest

from localkube.kubelet.processes import descriptors
from localkube.kubelet.processes.kernelerrors import RequestError

FEW = 128


@pytest.fixture(autouse=True)
def _few_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_limit_is_raised_and_restored() -> None:
    before = descriptors.raise_limit()
    assert before == FEW
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > FEW
    descriptors.restore_limit(before)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == FEW


def test_sufficient_descriptors_are_accepted() -> None:
    descriptors.require_spare(1)


def test_shortage_of_descriptors_is_an_error_with_advice() -> None:
    with pytest.raises(RequestError, match=f"fewer than {FEW} of {FEW} are left. Restart the cluster with a higher"):
        descriptors.require_spare(FEW)
