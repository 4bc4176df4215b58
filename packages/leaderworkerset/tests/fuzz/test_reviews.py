"""Every body of a review is answered with an AdmissionReview that allows it, or rejects it with the user's error."""

import time
from random import Random

import msgspec
import pytest
from tests.fuzz import reviews
from tests.fuzz.seeds import seeds

from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.webhooks import review

LENGTH = 100
"""Reviews of one seed."""

LONGEST = 2.0
"""Seconds of the processor that one answer may take."""


@pytest.mark.parametrize("path", MANAGED.decisions)
def test_every_review_gets_an_answer(path: str) -> None:
    """Every review gets an answer (R-OP-79)."""
    for seed in seeds(20):
        random = Random(f"{seed} {path}")
        for _ in range(LENGTH):
            body = reviews.review(random, path)
            started = time.thread_time()
            try:
                answered = msgspec.json.decode(review.answer(body, MANAGED.decisions[path]))
            except Exception as error:
                raise AssertionError(f"seed {seed} (again: SEEDS={seed}-{seed + 1}): {path} {body!r}") from error
            assert time.thread_time() - started < LONGEST, (seed, body)
            response = answered["response"]
            assert response["allowed"] or 400 <= response["status"]["code"] < 500, (seed, body, response)
