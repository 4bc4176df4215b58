"""Tests that the API server responds to each request without an internal error."""

import asyncio

from tests.fuzz import requests, running
from tests.fuzz.seeds import seeds

LENGTH = 40
"""The number of requests that are generated from one seed and sent to one server."""


def test_every_request_is_served_or_rejected() -> None:
    kinds = requests.served()
    for seed in seeds(150):
        sent = requests.Requests(seed, kinds).sequence(LENGTH)
        defect = asyncio.run(running.play(sent, seed))
        if defect is not None:
            raise AssertionError(running.describe(seed, *running.smallest(sent, defect, seed)))
