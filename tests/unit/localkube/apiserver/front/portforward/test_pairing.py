"""Which streams belong together."""

import pytest

from localkube.apiserver.front.portforward.pairing import Pair, PairingError, Pairs, Purpose, purpose


def headers(**changed: str) -> dict[str, str]:
    return {"streamtype": "data", "port": "80", "requestid": "7"} | changed


def test_the_streams_of_a_request_are_a_pair_in_either_order() -> None:
    pairs = Pairs()
    first = pairs.add(1, Purpose("a", "error", 80))
    second = pairs.add(3, Purpose("b", "data", 81))
    assert (first.missing, second.missing) == ("data", "error")
    assert pairs.add(5, Purpose("b", "error", 81)) is second
    assert pairs.add(7, Purpose("a", "data", 80)) is first
    assert (first, second) == (Pair("a", 80, data=7, error=1), Pair("b", 81, data=3, error=5))
    assert (first.missing, second.missing) == (None, None)


def test_a_request_may_come_again_when_its_pair_is_complete_or_dropped() -> None:
    pairs = Pairs()
    first = [pairs.add(1, Purpose("a", "error", 80)), pairs.add(3, Purpose("a", "data", 80))][0]
    second = pairs.add(5, Purpose("a", "error", 80))
    pairs.drop(first)
    assert pairs.add(7, Purpose("a", "data", 80)) is second
    third = pairs.add(9, Purpose("b", "error", 80))
    pairs.drop(third)
    assert pairs.add(11, Purpose("b", "error", 80)) is not third


@pytest.mark.parametrize(
    ("second", "text"),
    [
        (Purpose("a", "error", 80), "request a has its error stream already"),
        (Purpose("a", "data", 81), "request a is for port 80, its other stream for 81"),
    ],
)
def test_streams_that_contradict_each_other_are_refused(second: Purpose, text: str) -> None:
    pairs = Pairs()
    first = pairs.add(1, Purpose("a", "error", 80))
    with pytest.raises(PairingError, match=text):
        pairs.add(3, second)
    assert first == Pair("a", 80, error=1)


def test_the_purpose_is_read_from_the_headers() -> None:
    assert purpose(3, headers()) == Purpose("7", "data", 80)


def test_streams_of_clients_that_name_no_request_are_neighbors() -> None:
    error = purpose(5, {"streamtype": "error", "port": "80"})
    data = purpose(7, {"streamtype": "data", "port": "80"})
    assert error.request == data.request


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"streamtype": "stdout"}, 'header streamtype: Invalid value: "stdout": must be data or error'),
        ({"streamtype": ""}, 'header streamtype: Invalid value: "": must be data or error'),
        ({"port": "0"}, 'header port: Invalid value: "0": must be between 1 and 65535, inclusive'),
        ({"port": "65536"}, "must be between 1 and 65535"),
        ({"port": "http"}, 'Invalid value: "http"'),
        ({"port": ""}, 'Invalid value: ""'),
    ],
)
def test_headers_that_say_nothing_sensible_are_refused(changed: dict[str, str], text: str) -> None:
    with pytest.raises(PairingError, match=text):
        purpose(1, headers(**changed))
