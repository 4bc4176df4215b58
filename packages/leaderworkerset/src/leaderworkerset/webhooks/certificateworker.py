"""Processes certificate requests for `certificatesubprocess.py`. Each input line contains one request."""

import os
import signal
import sys
from typing import Final

import msgspec

from leaderworkerset.webhooks import certificates, rotation
from leaderworkerset.webhooks.certificates import CertificateError
from leaderworkerset.webhooks.certificatesubprocess import (
    FindEnd,
    Question,
    Rotate,
    RotationResult,
    RotationStep,
    SelfSign,
)

_decode: Final = msgspec.json.Decoder(Question).decode


def respond(line: bytes) -> bytes:
    """Process a request. Request and response are JSON."""
    question: Question = _decode(line)
    match question:
        case Rotate():
            return msgspec.json.encode(rotate(question))
        case SelfSign(hosts, now):
            authority = certificates.create_authority(now)
            pair = certificates.issue(authority, hosts, now, validity=certificates.AUTHORITY_VALIDITY)
            return msgspec.json.encode(pair.chain)
        case FindEnd(chain):
            try:
                return msgspec.json.encode(certificates.expires_at(chain))
            except CertificateError:  # OpenSSL reads more forms
                return b"null"


def rotate(question: Rotate) -> RotationResult:
    """Perform the next step for a Secret."""
    before = rotation.read(question.data)
    step = rotation.decide(before, question.hosts, question.now)
    material = rotation.renew(before, step, question.hosts, question.now)
    return RotationResult(
        step,
        question.data if step is RotationStep.KEEP else {**question.data, **rotation.write(material)},
        chain=material.serving.chain,
        signer=certificates.split(material.bundle)[0],
        until=certificates.expires_at(material.serving.certificate),
        due=rotation.due_at(material),
    )


def main() -> None:
    """Process requests until the input or output is closed. The manager handles interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for line in sys.stdin.buffer:
            sys.stdout.buffer.write(respond(line) + b"\n")
            sys.stdout.buffer.flush()
    except BrokenPipeError:  # the manager was killed; Python flushes again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
