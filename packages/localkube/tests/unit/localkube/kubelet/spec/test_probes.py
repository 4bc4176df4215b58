"""Tests how the results of consecutive probes are evaluated."""

import pytest
from tests.kubeletpods import container

from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.spec import probes
from localkube.kubelet.spec.podspec import SpecError
from localkube.kubelet.spec.probes import ProbeResults, ProbeSettings

RULES = ProbeSettings(initial_delay=0, period=10, timeout=1, successes=2, failures=3)


def verdicts(results: str) -> list[bool | None]:
    tally, found = ProbeResults(), []
    for result in results:
        tally = probes.observe(tally, RULES, good=result == "+")
        found.append(tally.verdict)
    return found


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ("++", [None, True]),
        ("---", [None, None, False]),
        ("+-+-", [None, None, None, None]),
        ("++--+", [None, True, True, True, True]),
        ("++---", [None, True, True, True, False]),
        ("---++", [None, None, False, False, True]),
    ],
)
def test_consecutive_results_change_the_verdict(results: str, expected: list[bool | None]) -> None:
    assert verdicts(results) == expected


def test_absent_and_zero_settings_have_kubernetes_defaults() -> None:
    assert probes.settings({"periodSeconds": 0}) == ProbeSettings(
        initial_delay=0, period=10, timeout=1, successes=1, failures=3
    )


@pytest.mark.parametrize(
    ("probe", "text"),
    [
        ({"grpc": {"port": 1}}, "gRPC probes are not supported on the embedded cluster"),
        ({}, None),
        ({"periodSeconds": 1}, "must have exactly one of exec, httpGet, tcpSocket, not 0"),
        ({"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}}, "not 2"),
        ({"httpGet": {"port": "http"}}, 'does not declare a port named "http"'),
        ({"httpGet": {"port": 80}}, None),
    ],
)
def test_impossible_probes_are_rejected(probe: JSONObject, text: str | None) -> None:
    main = container(readinessProbe=probe)
    if text is None:
        probes.check(main)
    else:
        with pytest.raises(SpecError, match=text):
            probes.check(main)
