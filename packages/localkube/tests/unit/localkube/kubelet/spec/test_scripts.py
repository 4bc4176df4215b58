"""What a shell's script starts is read from its words."""

import pytest

from localkube.kubelet.spec import scripts


@pytest.mark.parametrize(
    ("script", "names"),
    [
        ("sleep 10", ["sleep"]),
        ("a; b && c || d | e & f", ["a", "b", "c", "d", "e", "f"]),
        ("X=1 Y= program --flag", ["program"]),
        ("cd /x\nexport A=1\nprogram one \\\n  two\n# no-program\n", ["program"]),
        ("if test -e x; then one; else two; fi", ["one", "two"]),
        ("while ! [ -e /tmp/go ]; do sleep 0.1; done; touch /tmp/open", ["sleep", "touch"]),
        ("for i in 1 2 3; do work $i > out 2>&1 < in; done", ["work"]),
        ("(one; two) && { three; }", ["one", "two", "three"]),
        ('$PROGRAM x; "$@"; `which x`', []),
        ("bash /opt/serve.sh leader --size=$(LWS_GROUP_SIZE); vllm serve", ["bash", "/opt/serve.sh", "LWS_GROUP_SIZE", "vllm"]),
        ("python3 -m vllm.server --port 80", ["python3"]),
        ("/llama-server -m model", ["/llama-server"]),
        ("serve () { one; }\nserve", ["one"]),
        ("echo 'an open quote", []),
    ],
)  # fmt: skip
def test_programs_are_read_from_a_script(script: str, names: list[str]) -> None:
    assert [found.name for found in scripts.starts(["/bin/sh", "-c", script])] == names
    assert [found.name for found in scripts.starts(["bash", "-ec", script])] == names


@pytest.mark.parametrize(
    "argv", [["sleep", "10"], ["sh", "script.sh", "x"], ["sh", "-c"], ["python3", "-c", "import os"]]
)
def test_other_programs_name_nothing(argv: list[str]) -> None:
    assert list(scripts.starts(argv)) == []


def test_a_file_of_an_interpreter_is_told_from_a_program() -> None:
    assert list(scripts.starts(["sh", "-c", "bash /opt/x.sh"]))[1] == scripts.Started("/opt/x.sh", is_file=True)
