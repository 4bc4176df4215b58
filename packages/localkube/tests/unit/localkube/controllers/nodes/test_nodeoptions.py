"""Tests the taints and the capacity of simulated nodes in the format that users enter."""

import pytest

from kuberuntime.objects.meta import JSONObject
from localkube.controllers.nodes.nodeoptions import parse_capacity, parse_taint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b:NoSchedule", {"key": "a", "value": "b", "effect": "NoSchedule"}),
        ("a:NoExecute", {"key": "a", "effect": "NoExecute"}),
        ("a=:NoExecute", {"key": "a", "effect": "NoExecute"}),
        ("example.com/pool=p{i//2}:PreferNoSchedule", {"key": "example.com/pool", "value": "p1", "effect": "PreferNoSchedule"}),
    ],
)  # fmt: skip
def test_taints_are_parsed(text: str, expected: JSONObject) -> None:
    assert parse_taint(text).taint(3) == expected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a", "must have the form KEY=VALUE:EFFECT"),
        ("a=b", "must have the form KEY=VALUE:EFFECT"),
        ("a=b:", "with an effect of NoSchedule, PreferNoSchedule, NoExecute"),
        ("a=b:Never", "with an effect of NoSchedule, PreferNoSchedule, NoExecute"),
        ("=b:NoSchedule", "name part must be non-empty"),
        (":NoSchedule", "name part must be non-empty"),
        ("a=b c:NoSchedule", "a valid label must be"),
        ("a=b{i:NoSchedule", "a brace is not opened or not closed"),
        ("a=b{j}:NoSchedule", "'j' is not allowed"),
    ],
)
def test_malformed_taints_are_rejected(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=r"^Invalid value: ") as caught:
        parse_taint(text)
    assert error in str(caught.value)


def test_capacity_may_be_given_in_several_words() -> None:
    expected = {"cpu": "8", "memory": "32Gi", "pods": "20", "google.com/tpu": "4", "hugepages-2Mi": "1Gi"}
    assert parse_capacity(["cpu=8,memory=32Gi", "pods=20", "google.com/tpu=4,hugepages-2Mi=1Gi"]) == expected
    assert parse_capacity([]) == {}


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["cpu"], "must have the form RESOURCE=AMOUNT"),
        (["cpu=8,"], "must have the form RESOURCE=AMOUNT"),
        (["=1"], "'' is not a resource name"),
        (["a b=1"], "'a b' is not a resource name"),
        (["mem=4Gi"], "unknown resource 'mem': must be cpu, memory, ephemeral-storage, pods"),
        (["cpu=much"], "cpu: "),
        (["cpu="], "cpu: "),
        (["memory=-1Gi"], "memory: must be greater than or equal to 0"),
        (["google.com/tpu=1.5"], "google.com/tpu: must be a whole number"),
        (["pods=500m"], "pods: must be a whole number"),
        (["cpu=1,cpu=2"], "cpu is specified two times"),
        (["cpu=1", "cpu=2"], "cpu is specified two times"),
    ],
)
def test_malformed_capacity_is_rejected(words: list[str], error: str) -> None:
    with pytest.raises(ValueError, match=r"^Invalid value: ") as caught:
        parse_capacity(words)
    assert error in str(caught.value)
