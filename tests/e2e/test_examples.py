"""Every example runs, and its own check of the result holds."""

import re

import pytest
from tests.e2e.harness import ROOT, Shell

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]


def test_every_example_has_manifest_program_and_readme() -> None:
    folders = [path for path in (ROOT / "examples").iterdir() if path.is_dir() and not path.name.startswith((".", "_"))]
    assert {folder.name for folder in folders} == {"allreduce", "tensor-parallel", "jax-data-parallel"}
    for folder in folders:
        assert (folder / "lws.yaml").exists()
        assert (folder / "README.md").exists()
        assert list(folder.glob("*.py"))


def test_allreduce_ends_with_checked_sums_in_every_rank(shell: Shell) -> None:
    result = shell.lws(
        "run", "-f", "examples/allreduce/lws.yaml", "--image", "allreduce=examples/allreduce",
        "--until", "done", "--timeout", "60",
    )  # fmt: skip
    verified = set(re.findall(r"^(\d/\d) all-reduce verified: 3 rounds over 4 ranks$", result.stdout, re.MULTILINE))
    assert verified == {f"{group}/{rank}" for group in range(2) for rank in range(4)}


def test_jax_ranks_end_at_the_loss_of_one_process(shell: Shell) -> None:
    result = shell.lws(
        "run", "-f", "examples/jax-data-parallel/lws.yaml", "--image", "jax-data-parallel=examples/jax-data-parallel",
        "--until", "done", "--timeout", "80",
    )  # fmt: skip
    assert "0/0 verified: 4 ranks and one process end at the same loss" in result.stdout


def test_each_tensor_parallel_group_answers_as_the_unsplit_model(shell: Shell) -> None:
    shell.lws("up", "--detach", "--image", "tensor-parallel=examples/tensor-parallel")
    shell.lws("apply", "--local", "-f", "examples/tensor-parallel/lws.yaml")
    shell.lws("wait", "--local", "tensor-parallel", "--timeout", "60")
    for group in range(2):
        forward = shell.start("port-forward", "--local", f"tensor-parallel/{group}", ":8080")
        try:
            assert forward.stdout is not None
            address = forward.stdout.readline().split(" ")[0]
            answer = shell.run(["python3", "examples/tensor-parallel/check.py", f"http://{address}"])
            assert "4 ranks answer as one" in answer.stdout
        finally:
            forward.terminate()
            forward.communicate(timeout=10)
