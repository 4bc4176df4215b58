"""Stores the identity of a cluster (token, certificate, port), so that kubeconfigs remain valid after restarts.

It is stored in the cluster's directory, in a file that only its owner can read. An unreadable file is an error and is
never replaced, because users of the old kubeconfig would lose access without notice.
"""

import secrets
from datetime import datetime
from pathlib import Path

import msgspec

from localkube import certificate
from localkube.errors import LocalkubeError
from localkube.statedirectory import write_private


class IdentityError(LocalkubeError):
    """The file cannot be used. The message contains the file and the solution."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The bearer token, the certificate and its key (PEM), and the last API server port, or 0 if it is unset."""

    token: str
    certificate: str
    key: str
    port: int = 0

    def __repr__(self) -> str:
        return f"Identity(port={self.port})"


def load_or_create(path: Path, now: datetime) -> Identity:
    """Return the identity stored at `path`, or create and store one if it does not exist."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Identity)
    except FileNotFoundError:
        identity = create(now)
        save(path, identity)
        return identity
    except (msgspec.MsgspecError, OSError) as error:
        raise IdentityError(
            f"{path}: cannot use the file ({error}). Delete it to create a new cluster identity"
        ) from error


def create(now: datetime) -> Identity:
    """Create a token of 256 random bits, a key and its certificate."""
    pem, key = certificate.build_certificate(now)
    return Identity(token=secrets.token_urlsafe(32), certificate=pem.decode(), key=key.decode())


def save(path: Path, identity: Identity) -> None:
    """Write the identity to a file that only this user can read."""
    write_private(path, msgspec.json.encode(identity))
