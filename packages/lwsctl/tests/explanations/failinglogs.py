"""Defines thirty failing programs with full logs: normal output, then the failure from `failinglogs.txt`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from kuberuntime.objects.errorlines import ErrorLine

TABLE: Final = Path(__file__).with_name("failinglogs.txt")

BEFORE: Final[Mapping[str, tuple[str, ...]]] = {
    "vllm": (
        "(APIServer pid=1) INFO 11-28 10:00:{0:02} [model.py:547] Resolved architecture: LlamaForCausalLM",
        "(APIServer pid=1) WARNING 11-28 10:00:{0:02} [cuda.py:108] fuse_attn_quant is not supported, falling back",
        "(EngineCore_DP0 pid=71) INFO 11-28 10:01:{0:02} [default_loader.py:268] Loading weights took {0}.31 seconds",
        "(EngineCore_DP0 pid=71) Loading safetensors checkpoint shards:  {0}% Completed | {0}/100 [00:03<00:09,  3.2it/s]",
        "(Worker_TP1 pid=99) INFO 11-28 10:01:{0:02} [parallel_state.py:1208] rank 1 in world size 2 is assigned as TP rank 1",
        "(EngineCore_DP0 pid=71) ERROR 11-28 10:01:{0:02} [fa_utils.py:57] Cannot use FA version 3: not supported for head size 512",
    ),
    "sglang": (
        "[2026-11-28 10:00:{0:02} TP0] Load weight begin. avail mem=78.84 GB",
        "[2026-11-28 10:00:{0:02} TP1] Prefill batch. #new-seq: 1, #new-token: {0}, #cached-token: 0, #queue-req: 0",
        '[2026-11-28 10:01:{0:02}] INFO:     10.0.0.9:51000 - "GET /health HTTP/1.1" 200 OK',
        "[2026-11-28 10:01:{0:02} TP0] Decode batch. #running-req: {0}, token usage: 0.11, gen throughput (token/s): 81.2",
    ),
    "training": (
        "[rank0]: step {0} of 9000, loss 2.31, grad norm 0.9, error rate 0.00",
        "[rank1]: step {0} of 9000, loss 2.30, 0 failed batches",
        "W1128 10:00:{0:02}.000 12 torch/distributed/run.py:793] Setting OMP_NUM_THREADS environment variable to be 1",
        "2026-11-28 10:00:{0:02},123 - trainer - WARNING - could not read shard {0}, retrying",
    ),
    "nccl": (
        "web-0:71:99 [0] NCCL INFO Channel {0:02}/0 : 1[c5000] -> 0[29000] via P2P/IPC/read",
        "web-0:71:99 [0] NCCL INFO Connected all rings",
        "web-0:71:99 [0] NCCL INFO NET/IB : No device found.",
        "web-0:71:99 [0] NCCL INFO threadThresholds 8/8/64 | 16/8/64 | 512 | 512",
    ),
    "ray": (
        "2026-11-28 10:00:{0:02},871 INFO worker.py:1843 -- Connecting to existing Ray cluster at address: 10.0.0.4:6379",
        "(RayWorkerWrapper pid=211, ip=10.0.0.5) INFO 11-28 10:00:{0:02} [cuda.py:240] Using Flash Attention backend.",
        "(raylet) [2026-11-28 10:00:{0:02},117 I 135 135] (raylet) node_manager.cc:560: new job has started",
        "(autoscaler +{0}s) Adding 1 node(s) of type worker.",
    ),
    "triton": (
        'I1128 10:00:{0:02}.000100 1 model_lifecycle.cc:472] "loading: llama:{0}"',
        "I1128 10:00:{0:02}.000200 1 pinned_memory_manager.cc:275] \"Pinned memory pool is created at '0x7f7d' with size 268435456\"",
        'W1128 10:00:{0:02}.000300 1 metrics.cc:757] "Unable to get power limit for GPU 0"',
    ),
    "jax": (
        "I1128 10:00:{0:02}.000000 12 distributed.py:113] Connecting to JAX distributed service on web-0.web:1234",
        "step {0}: loss 2.1, {0} tokens per second",
        "W1128 10:00:{0:02}.000000 12 hlo_rematerialization.cc:3005] Can't reduce memory use below 10.2GiB by rematerialization",
    ),
    "go": (
        '{{"level":"info","ts":"2026-11-28T10:00:{0:02}Z","msg":"request served","code":200,"errors":0}}',
        '{{"level":"debug","ts":"2026-11-28T10:01:{0:02}Z","msg":"watching /etc/router"}}',
    ),
    "shell": ("+ cp /models/part-{0:02} /cache", "downloading part {0} of 60", "retry {0}: 0 errors"),
}
"""Lines of normal operation in the format of each program. Some of them report errors that are tolerated."""

ROUNDS: Final = 60
"""The number of repetitions of such lines. Each log has more lines than `lws explain` displays."""


class FailingLog(NamedTuple):
    """A program with its log and its exit code, and the expected error, cause and next step."""

    name: str
    lines: tuple[str, ...]
    exit_code: int
    error: ErrorLine
    cause: str
    step: str


def programs() -> Iterator[FailingLog]:
    """Yield the programs in the table."""
    for section in TABLE.read_text().split("\n## ")[1:]:
        title, *rows = section.rstrip("\n").split("\n")
        name, before, code, cause, step = title.split(" | ")
        marked = [line for row in rows for line in _links(row)]
        by_mark = {row[0]: row[2:].strip() for row in marked if row[:1] in (">", "=", "?")}
        error = ErrorLine(by_mark.get(">") or by_mark["?"], is_certain=">" in by_mark, last=by_mark.get("=", ""))
        lines = (*_before(before), *(row[2:] for row in marked))
        yield FailingLog(name, lines, int(code), error, cause, step)


def _before(kind: str) -> Iterator[str]:
    for second in range(ROUNDS):
        yield from (line.format(second) for line in BEFORE[kind])


def _links(row: str) -> Iterator[str]:
    """Yield a row. For `%chain N`, yield N exceptions, each of which is the direct cause of the next exception."""
    if not row.startswith("%chain "):
        yield row
        return
    for number in range(1, int(row.split()[1]) + 1):
        yield "  Traceback (most recent call last):"
        yield from (f'    File "/app/link{number}.py", line {line}, in call' for line in range(4))
        yield f"  RuntimeError: link {number} failed"
        yield from ("  ", "  The above exception was the direct cause of the following exception:", "  ")
