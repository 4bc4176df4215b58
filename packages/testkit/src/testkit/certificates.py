"""Creates a CA, and a certificate for 127.0.0.1, for servers in tests."""

from typing import Final, NamedTuple

import trustme


class Pair(NamedTuple):
    """A certificate and its private key in PEM format."""

    certificate: bytes
    key: bytes

    @property
    def chain(self) -> bytes:
        """Return the certificate and the key as one PEM string, as TLS servers load them."""
        return self.certificate + self.key


_AUTHORITY: Final = trustme.CA()
TRUSTED: Final = _AUTHORITY.cert_pem.bytes()
"""The CA certificate in PEM format."""


def issue(key_type: trustme.KeyType = trustme.KeyType.ECDSA) -> Pair:
    """Return a certificate for 127.0.0.1 that the CA has issued."""
    leaf = _AUTHORITY.issue_cert("127.0.0.1", key_type=key_type)
    return Pair(leaf.cert_chain_pems[0].bytes(), leaf.private_key_pem.bytes())
