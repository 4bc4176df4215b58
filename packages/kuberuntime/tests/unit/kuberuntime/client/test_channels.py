"""Tests that the exit code of a command is read from the final Status of its channel."""

import msgspec
import pytest

from kuberuntime.client.channels import exit_code
from kuberuntime.errors import ConnectionFailedError


def test_exit_code_is_read_from_the_causes_of_a_status() -> None:
    status = {
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": "137"}]},
    }

    assert exit_code(msgspec.json.encode(status)) == 137


def test_failure_without_an_exit_code_is_a_connection_error() -> None:
    with pytest.raises(ConnectionFailedError, match="container not running"):
        exit_code(b'{"status":"Failure","message":"container not running"}')


@pytest.mark.parametrize("status", [b"", b"[]", b'{"status":1}', b'{"details":{"causes":[1]}}', b"\xff"])
def test_malformed_exit_status_is_an_error(status: bytes) -> None:
    with pytest.raises(ConnectionFailedError, match="cannot read the status"):
        exit_code(status)
