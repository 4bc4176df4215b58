"""Tests that each example runs as documented, and that its own result check succeeds."""

import re
from importlib.util import find_spec

import pytest
from testkit.waiting import until
from tests.e2e.harness import ROOT, SECONDS, SELDOM, Shell, line_with
from tests.e2e.pages import follow

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]


def test_every_example_has_manifest_program_and_readme() -> None:
    folders = [path for path in (ROOT / "examples").iterdir() if path.is_dir() and not path.name.startswith((".", "_"))]
    alone = {"kuberuntime", "localkube"}  # without LeaderWorkerSets: test_packages_alone.py
    alone |= {"python-client"}  # this example creates its own cluster: docs/how-to/python-client.md
    groups = {"allreduce", "tensor-parallel", "jax-data-parallel", "disaggregated", "router", "torch-ddp"}
    assert {folder.name for folder in folders} == {*groups, *alone, "api"}
    for folder in (folder for folder in folders if folder.name != "api"):  # test_api_examples.py
        assert (folder / "lws.yaml").exists() is (folder.name not in alone)
        assert (folder / "README.md").exists()
        assert list(folder.glob("*.py"))


def test_allreduce_completes_with_verified_sums_in_all_ranks(shell: Shell) -> None:
    printed = follow(shell, "examples/allreduce/README.md")
    verified = set(re.findall(r"^(\d/\d) all-reduce verified: 3 rounds over 4 ranks$", printed, re.MULTILINE))
    assert verified == {f"{group}/{rank}" for group in range(2) for rank in range(4)}
    shell.assert_nothing_is_left()


def test_ddp_ranks_learn_the_same_line(shell: Shell) -> None:
    printed = follow(shell, "examples/torch-ddp/README.md")
    assert printed.count("all-reduce verified, learned y = 3.00 x + -1.00") == 4
    shell.assert_nothing_is_left()


@pytest.mark.long
@pytest.mark.skipif(not find_spec("jax"), reason="jax is not installed: `make nightly` does")
def test_jax_ranks_reach_the_loss_of_one_process(shell: Shell) -> None:
    printed = follow(shell, "examples/jax-data-parallel/README.md")
    assert "0/0 verified: 4 ranks and one process end at the same loss" in printed


@pytest.mark.long
def test_tensor_parallel_groups_answer_like_the_unsplit_model(shell: Shell) -> None:
    assert "4 ranks answer as one" in follow(shell, "examples/tensor-parallel/README.md")
    with shell.running("port-forward", "--local", "tensor-parallel/1", ":8080") as forward:
        address = line_with(forward, "->").split(" ")[0]
        other = shell.run(["python3", "examples/tensor-parallel/check.py", f"http://{address}"])
    assert "4 ranks answer as one" in other.stdout


@pytest.mark.long
def test_routers_are_replaced_while_the_groups_run(shell: Shell) -> None:
    printed = follow(shell, "examples/router/README.md")
    assert printed.count("4 ranks answer as one") == 2
    version = "import urllib.request as u; print(u.urlopen('http://router:8080/healthz').headers['X-Router'])"
    ask = ["exec", "--local", "tensor-parallel/1", "--", "python3", "-c", version]
    until(
        lambda: {shell.lws(*ask).stdout.strip() for _ in range(4)} == {"2"},
        "only routers of version 2",
        SECONDS,
        poll=SELDOM,
    )
    shell.lws("wait", "--local", "tensor-parallel")


@pytest.mark.long
def test_prefill_and_decode_roll_without_a_failed_request(shell: Shell) -> None:
    printed = follow(shell, "examples/disaggregated/README.md")
    (before, during) = re.findall(r"^0 requests failed, (.*)$", printed, re.MULTILINE)
    assert before == "4 answers of version 1"
    assert re.fullmatch(r"\d+ answers of version 1, \d+ answers of version 2", during)
    assert re.search(r"^disaggregated +prefill 2/2, decode 2/2 +complete ", printed, re.MULTILINE)
