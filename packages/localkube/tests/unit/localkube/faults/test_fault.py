"""Tests parsed and rejected fields of fault requests."""

import json
from typing import Any

import pytest

from localkube.faults.fault import FORMS, Fault, FaultError, FaultKind, parse

POD = "default/web-0"


def body(**fields: Any) -> bytes:
    """Return a request."""
    return json.dumps({"seconds": 5} | fields).encode()


@pytest.mark.parametrize("kind", list(FaultKind))
def test_every_kind_of_fault_is_parsed(kind: FaultKind) -> None:
    form = FORMS[kind]
    targets = tuple([POD if form.targets_pods else "node-0"] * form.most)
    amount = form.amounts[1] if form.amounts else 0.0
    path = "/tmp" if form.has_path else ""
    read = parse(body(kind=kind, targets=targets, amount=amount, path=path))
    assert read == Fault(kind=kind, seconds=5, targets=targets, amount=amount, path=path)


@pytest.mark.parametrize(
    ("request_body", "message"),
    [
        (b"{", "invalid fault"),
        (b"[" * 100_000, "invalid fault"),
        (body(kind="flood"), "Invalid enum value 'flood' - at `$.kind`"),
        (body(kind="kill", targets=[POD], size=3), "unknown field `size`"),
        (body(kind="kill", targets=[POD], seconds=-1), "kill: seconds: -1.0: must be between 0 and 86400"),
        (body(kind="kill", targets=[POD], seconds=1e9), "kill: seconds: 1000000000.0: must be"),
        (body(kind="kill"), "kill: targets: must have 1 elements, but has 0"),
        (body(kind="partition", targets=[POD] * 3), "partition: targets: must have 1 to 2 elements, but has 3"),
        (body(kind="manager", targets=[POD]), "manager: targets: must have 0 elements, but has 1"),
        (body(kind="stop", targets=["web-0"]), "stop: targets: web-0: must be pods in the form NAMESPACE/NAME"),
        (body(kind="lose", targets=[POD]), "lose: amount: 0: must be between 0.0001 and 1"),
        (body(kind="lose", targets=[POD], amount=1.5), "lose: amount: 1.5: must be"),
        (body(kind="kill", targets=[POD], amount=1), "kill: amount: 1: must be between 0 and 0"),
        (body(kind="fill", targets=[POD]), "fill: path: '': must start with /"),
        (body(kind="kill", targets=[POD], path="/tmp"), "kill: path: '/tmp': unused"),
    ],
    ids=range(15),
)
def test_wrong_field_is_named(request_body: bytes, message: str) -> None:
    with pytest.raises(FaultError) as caught:
        parse(request_body)
    assert message in str(caught.value)
