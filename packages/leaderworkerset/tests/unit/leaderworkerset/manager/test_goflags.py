"""Tests flags in Go's syntax."""

import pytest

from leaderworkerset.manager import goflags
from leaderworkerset.manager.goflags import Flag, FlagError, HelpRequestedError

FLAGS = (
    Flag("config", str, "The file."),
    Flag("count", int, "How many.", "3"),
    Flag("elect", goflags.boolean, "Whether."),
)


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ([], {}),
        (["--config=a"], {"config": "a"}),
        (["-config", "a"], {"config": "a"}),
        (["--config="], {"config": ""}),
        (["--config=a=b"], {"config": "a=b"}),
        (["--config", "-elect"], {"config": "-elect"}),
        (["--count=1", "--count=2"], {"count": 2}),
        (["-elect", "--count", "5"], {"elect": True, "count": 5}),
        (["--elect=false"], {"elect": False}),
        (["--elect=T"], {"elect": True}),
    ],
)
def test_flags_are_parsed_as_in_go(words: list[str], given: dict[str, object]) -> None:
    assert goflags.parse(words, FLAGS) == given


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nope"], "flag provided but not defined: -nope"),
        (["--config"], "flag needs an argument: -config"),
        (["--elect=maybe"], 'invalid boolean value "maybe" for flag -elect: parse error'),
        (["--count=x"], 'invalid value "x" for flag -count: invalid literal'),
        (["--elect", "false"], "unexpected argument 'false'"),
        (["--", "x"], "unexpected argument '--'"),
        (["---config=x"], "bad flag syntax: ---config=x"),
        (["--=x"], "bad flag syntax: --=x"),
    ],
)
def test_invalid_flags_raise_an_error(words: list[str], message: str) -> None:
    with pytest.raises(FlagError) as caught:
        goflags.parse(words, FLAGS)
    assert message in str(caught.value)


@pytest.mark.parametrize("word", ["-h", "--help", "-help"])
def test_help_flag_raises_its_own_error(word: str) -> None:
    with pytest.raises(HelpRequestedError):
        goflags.parse([word], FLAGS)


def test_usage_lists_every_flag() -> None:
    assert goflags.usage(FLAGS).splitlines()[2:4] == ["  --count (default 3)", "        How many."]
