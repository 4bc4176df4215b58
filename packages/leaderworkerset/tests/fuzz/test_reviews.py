"""Tests that every review body is answered with an AdmissionReview, or rejected with the user's error."""

import time
from random import Random

import msgspec
import pytest
from tests.fuzz import reviews
from tests.fuzz.seeds import seeds

from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.webhooks import review

LENGTH = 100
"""The number of reviews for each seed."""

LONGEST = 2.0
"""The maximum CPU time in seconds of one response."""


@pytest.mark.parametrize("path", MANAGED.decisions)
def test_every_review_gets_an_answer(path: str) -> None:
    """Every review has a response (R-OP-79)."""
    for seed in seeds(20):
        random = Random(f"{seed} {path}")
        for _ in range(LENGTH):
            body = reviews.review(random, path)
            started = time.thread_time()
            try:
                answered = msgspec.json.decode(review.respond_to_review(body, MANAGED.decisions[path]))
            except Exception as error:
                raise AssertionError(f"seed {seed} (again: SEEDS={seed}-{seed + 1}): {path} {body!r}") from error
            assert time.thread_time() - started < LONGEST, (seed, body)
            response = answered["response"]
            assert response["allowed"] or 400 <= response["status"]["code"] < 500, (seed, body, response)
