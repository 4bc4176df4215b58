"""Tests the detection of commands in shell scripts."""

import pytest

from localkube.kubelet.spec import scripts


@pytest.mark.parametrize(
    ("script", "names"),
    [
        ("sleep 10", ["sleep"]),
        ("a; b && c | d & e", ["a", "b", "c", "d", "e"]),
        ("a && b || c", ["c"]),
        ("nvidia-smi || echo none; serve", ["serve"]),
        ("serve || exit 1", ["serve"]),
        ("serve || { echo broken; exit 1; }", ["serve"]),
        ("serve || (echo broken; exit 0)", []),
        ("trap '' TERM; echo ';' '|' \"a || b\"; trap 'kill $pid; wait' INT", []),
        ("echo 'one\ntwo'; echo \"a\n$(b; c)\n\"", []),
        ("cat <<EOF > /tmp/x\nnot-a-program\nEOF\nreal", ["cat", "real"]),
        ("cat <<-'END'; other\n\tno-program\n\tEND\nreal", ["cat", "other", "real"]),
        ("mapfile -t x < <(list); pushd /tmp; enable -n kill; coproc real", ["real"]),
        ("[[ -n $x && $y || -z $z ]] && real; (( i = 3 | 4 )); A=(b c) B+=x real", ["real", "real"]),
        ("for ((i = 0; i < 3; i++)); do real; done", ["real"]),
        ("case $x in\n  leader|first) one;;\n  *) two ;;\nesac\nthree", ["one", "two", "three"]),
        ("case $x in a) one;; esac; two", ["one", "two"]),
        ("if nvidia-smi -L; then one; elif rocm-smi; then two; else three; fi", ["one", "two", "three"]),
        ("if command -v uv >/dev/null; then uv run x; fi; [ -x /opt/y ] && /opt/y; real", ["real"]),
        ("until probe; do sleep 1; done; while ! other; do :; done", ["probe", "sleep", "other"]),
        ("! probe && one; timeout 1 probe && two; timeout 9 serve", ["one", "two", "timeout", "serve"]),
        ("{ probe; } || true; (probe; { probe && probe; }) || true; { one; two; } && three", ["one", "two", "three"]),
        ("{ probe || exit 1; } || true; { one || exit 1; }; ( probe ) || (two; three)", ["one", "two", "three"]),
        ("eval \"exec vllm serve\"; eval one '&&' two; eval \"$CODE\"", ["vllm", "one", "two"]),
        ("./one; cd /opt; bin/two; cd sub && ./three", ["./one", "/opt/bin/two", "/opt/sub/./three"]),
        ("cd $HOME; ./one; cd /x; curl -o two https://x; ./two", ["curl"]),
        ("one # ; two\nthree a#b 2>&1 >/dev/null &>> x", ["one", "three"]),
        ("function serve {\n one\n}\nserve", ["one"]),
        ("exec -a name real; exec 3>&1", []),
        ("X=1 Y= program --flag", ["program"]),
        ("cd /x\nexport A=1\nprogram one \\\n  two\n# no-program\n", ["program"]),
        ("if test -e x; then one; else two; fi", ["one", "two"]),
        ("while ! [ -e /tmp/go ]; do sleep 0.1; done; touch /tmp/open", ["sleep", "touch"]),
        ("for i in 1 2 3; do work $i > out 2>&1 < in; done", ["work"]),
        ("(one; two) && { three; }", ["one", "two", "three"]),
        ('$PROGRAM x; "$@"; `which x`', []),
        ("bash /opt/serve.sh leader --size=$(LWS_GROUP_SIZE); vllm serve", ["bash", "/opt/serve.sh", "vllm"]),
        ("python3 -m vllm.server --port 80", ["python3"]),
        ("/llama-server -m model", ["/llama-server"]),
        ("serve () { one; }\nserve", ["one"]),
        ("echo 'an open quote", []),
        ("timeout -s KILL 30m one; nice -n 5 stdbuf -oL two | three; setsid four &", ["timeout", "one", "nice", "stdbuf", "two", "three", "setsid", "four"]),
        ("env -u HTTP_PROXY -C /x one; sudo -nu serve A=1 two | xargs -rI FILE -n 1 three FILE", ["env", "one", "sudo", "two", "xargs", "three"]),
        ("numactl -N 0 --membind 0 one; taskset -c 0-3 two; ionice -c 3 three; xargs -n1", ["numactl", "one", "taskset", "two", "ionice", "three", "xargs"]),
        ("stdbuf -o L one; timeout --signal KILL -k9 5 two; nice -5 three", ["stdbuf", "one", "timeout", "two", "nice", "three"]),
        ("bash -lc 'cd /x && one'; sh -c \"two || true; three\"", ["bash", "one", "sh", "three"]),
    ],
)  # fmt: skip
def test_programs_are_read_from_a_script(script: str, names: list[str]) -> None:
    assert [found.name for found in scripts.started_programs(["/bin/sh", "-c", script])] == names
    assert [found.name for found in scripts.started_programs(["bash", "-euo", "pipefail", "-c", script])] == names


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        (["/usr/bin/env", "python3", "/opt/serve.py", "x"], ["python3", "/opt/serve.py"]),
        (["env", "-i", "A=1", "vllm", "serve"], ["vllm"]),
        (["env", "-u", "HTTP_PROXY", "--unset", "A", "vllm", "serve"], ["vllm"]),
        (["env", "-S", "A=1 python3 -u", "/opt/serve.py"], ["python3", "/opt/serve.py"]),
        (["nohup", "sh", "-c", "env B=2 bash /opt/serve.sh"], ["sh", "env", "bash", "/opt/serve.sh"]),
        (["env"], []),
        (["/bin/bash", "-lc", "--", "ulimit -n 65536; ray start --head"], ["ray"]),
        (["python3", "./server.py", "leader"], ["./server.py"]),
        (["bash", "-c", "python3 made-before.py"], ["python3"]),
    ],
    ids=[
        "interpreter",
        "program",
        "unset variables",
        "split words",
        "script",
        "env alone",
        "end of options",
        "relative",
        "relative in a script",
    ],
)
def test_programs_started_by_env_are_read(argv: list[str], names: list[str]) -> None:
    assert [found.name for found in scripts.started_programs(argv)] == names


def test_module_started_by_env_is_read() -> None:
    assert scripts.python_module(["env", "A=1", "python3", "-m", "engine.server"]) == "engine"


def test_deeply_nested_script_is_ignored() -> None:
    assert list(scripts.started_programs(["sh", "-c", 'a "$(' * 5000 + ')"' * 5000])) == []


@pytest.mark.parametrize(
    "argv", [["sleep", "10"], ["sh", "-x", "script.sh"], ["sh", "-c"], ["python3", "-c", "import os"]]
)
def test_other_programs_name_nothing(argv: list[str]) -> None:
    assert list(scripts.started_programs(argv)) == []


def test_file_of_an_interpreter_is_recognized() -> None:
    assert list(scripts.started_programs(["sh", "-c", "bash /opt/x.sh"]))[1] == scripts.StartedProgram(
        "/opt/x.sh", is_file=True
    )
