"""Any request to the API server is answered, and never with an error of the server itself."""

import asyncio

from tests.fuzz import requests, running
from tests.fuzz.seeds import seeds

LENGTH = 40
"""Requests of one seed, all to one server."""


def test_every_request_is_served_or_refused() -> None:
    kinds = requests.served()
    for seed in seeds(150):
        sent = requests.Requests(seed, kinds).sequence(LENGTH)
        defect = asyncio.run(running.play(sent, seed))
        if defect is not None:
            raise AssertionError(running.describe(seed, *running.smallest(sent, defect, seed)))
