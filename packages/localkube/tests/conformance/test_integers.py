"""Tests that integer fields report values outside 32 bits as type errors instead of invalid values."""

import pytest
from tests.conformance.conftest import CheckSame
from tests.conformance.objects import container, pod, service
from tests.conformance.transcript import Session

from kuberuntime.objects.resources import PODS, SERVICES


@pytest.mark.parametrize("number", [2**31, 2**40, 1.5, 2**31 - 1, -(2**31)])
def test_integers_are_limited_to_32_bits(same: CheckSame, number: float) -> None:
    async def sequence(session: Session) -> None:
        await session.send("POST", session.path(SERVICES), service("plain", ports=[{"port": number}]))
        await session.send("POST", session.path(SERVICES), service("named", ports=[{"port": 80, "targetPort": number}]))
        ports = [{"containerPort": number}]
        await session.send("POST", session.path(PODS), pod("ports", containers=[container(ports=ports)]))

    same(sequence)
