"""What looks like a secret does not get into an episode, and what only resembles one stays readable."""

import base64
import time

import pytest

from leaderworkerset.views.masking import MASK, Mask, known


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password=hunter2", f"password={MASK}"),
        ('{"api_key": "abc123xyz", "rank": 1}', f'{{"api_key": "{MASK}", "rank": 1}}'),
        ("DB_PASSWORD: s3cr3t-thing", f"DB_PASSWORD: {MASK}"),
        ("hf.token = hf-thing", f"hf.token = {MASK}"),
        ("Authorization: Bearer abcdefgh12345", f"Authorization: Bearer {MASK}"),
        ("GET postgres://me:pw@db/x", f"GET postgres://{MASK}@db/x"),
        ("key AKIAABCDEFGHIJKLMNOP used", f"key {MASK} used"),
        ("got hf_abcdefghijklmnopqrstuv", f"got {MASK}"),
        ("jwt eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl end", f"jwt {MASK} end"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nnext", f"{MASK}\nnext"),
        ("-----BEGIN PRIVATE KEY-----\nabc and cut", MASK),
    ],
)
def test_forms_of_secrets_are_masked_and_counted(text: str, shown: str) -> None:
    mask = Mask()
    assert mask.text(text) == shown
    assert mask.count == 1


@pytest.mark.parametrize(
    "text",
    ["max_tokens=4096", "tokens: 512", "tokenizer=/models/llama", "token=17", "secret: None", "KeyError: 'rank'", ""],
)
def test_what_programs_of_models_print_stays(text: str) -> None:
    mask = Mask()
    assert mask.text(text) == text
    assert mask.count == 0


def test_values_of_secrets_and_of_variables_are_known_in_plain_in_base64_and_line_by_line() -> None:
    secret = {"data": {"a": encoded("first-line\nsecond-line\n"), "b": encoded(b"\xff\xfe\x00\x01binary"), "c": "*"}}
    env = [{"name": "API_TOKEN", "value": "from-variable"}, {"name": "MODE", "value": "production"}, {"name": "TOKEN"}]
    pod = {
        "spec": {"containers": [{"env": env}], "initContainers": [{"env": [{"name": "PASSWORD", "value": "12345678"}]}]}
    }
    mask = Mask(known([secret, {}], [pod, {}]))
    text = f"first-line second-line {secret['data']['a']} from-variable production 12345678"
    assert mask.text(text) == f"{MASK} {MASK} {MASK} {MASK} production 12345678"
    assert mask.count == 4


def test_short_values_are_words_of_other_meaning() -> None:
    assert Mask(["true", "8080", ""]).text("true at 8080") == "true at 8080"


def test_a_longer_value_goes_before_one_that_it_contains() -> None:
    assert Mask(["abcdef", "abcdefghij"]).text("abcdefghij abcdef") == f"{MASK} {MASK}"


@pytest.mark.parametrize("piece", ["a.", "eyJ-", "token", "password= ", "://", "-----BEGIN ", "x", "-"])
@pytest.mark.slow
def test_hostile_lines_take_no_time(piece: str) -> None:
    began = time.process_time()
    Mask().text(piece * (8 * 1024 // len(piece)))
    assert time.process_time() - began < 2


def encoded(value: str | bytes) -> str:
    """Return a value as a Secret has it."""
    return base64.b64encode(value.encode() if isinstance(value, str) else value).decode()
