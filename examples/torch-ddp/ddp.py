"""Data-parallel training in a group. Every rank has its own data, and the ranks sum their gradients in each step.

With torch the sum is an all-reduce, over NCCL where each rank has a GPU, else over gloo. Without torch the leader adds
up over TCP, with the standard library. Each rank checks what it learned: a rank that is missing, or one that is counted
twice, ends in other numbers.
"""

import json
import os
import random
import socket
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec

PORT = 29500
STEPS = 60
RATE = 0.3
START_UP = 60.0  # the seconds that a worker waits for the leader
SLOPE, OFFSET = 3.0, -1.0

Sum = Callable[[list[float]], list[float]]


def main() -> None:
    """Train, verify the result, and print the used backend."""
    leader, size = os.environ["LWS_LEADER_ADDRESS"], int(os.environ["LWS_GROUP_SIZE"])
    rank = int(os.environ["LWS_WORKER_INDEX"])
    total, how = over_torch(leader, size, rank) if find_spec("torch") else over_tcp(leader, size, rank)
    (ranks,) = total([float(rank + 1)])
    if ranks != size * (size + 1) / 2:
        sys.exit(f"the all-reduce of the ranks is {ranks}, not {size * (size + 1) / 2}")
    slope, offset = train(total, size, random.Random(rank))
    if abs(slope - SLOPE) + abs(offset - OFFSET) > 0.01:
        sys.exit(f"learned {slope:.3f} x + {offset:.3f}, not {SLOPE} x + {OFFSET}")
    seen = os.environ.get("CUDA_VISIBLE_DEVICES") or "no GPU"
    print(f"rank {rank} of {size}: all-reduce verified, learned y = {slope:.2f} x + {offset:.2f} ({how}; {seen})")


def train(total: Sum, size: int, chance: random.Random) -> tuple[float, float]:
    """Fit a line with the points of this rank and the gradients of all ranks."""
    points = [chance.uniform(-1, 1) for _ in range(200)]
    slope = offset = 0.0
    for _ in range(STEPS):
        errors = [slope * x + offset - (SLOPE * x + OFFSET) for x in points]
        by_slope = 2 * sum(error * x for error, x in zip(errors, points, strict=True)) / len(points)
        by_offset = 2 * sum(errors) / len(points)
        by_slope, by_offset = (value / size for value in total([by_slope, by_offset]))
        slope, offset = slope - RATE * by_slope, offset - RATE * by_offset
    return slope, offset


def over_torch(leader: str, size: int, rank: int) -> tuple[Sum, str]:
    """Return the all-reduce function of torch."""
    import torch
    from torch import distributed

    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda:0" if on_gpu else "cpu")
    backend = "nccl" if on_gpu else "gloo"
    distributed.init_process_group(backend, init_method=f"tcp://{leader}:{PORT}", rank=rank, world_size=size)

    def total(values: list[float]) -> list[float]:
        tensor = torch.tensor(values, dtype=torch.float64, device=device)
        distributed.all_reduce(tensor)
        return [float(value) for value in tensor]

    return total, f"torch over {backend}"


def over_tcp(leader: str, size: int, rank: int) -> tuple[Sum, str]:
    """Return a sum function in which the leader adds one line of numbers per rank."""
    if rank == 0:
        server = socket.create_server((os.environ.get("POD_IP", "0.0.0.0"), PORT))
        links = [server.accept()[0].makefile("rw") for _ in range(1, size)]
    else:
        links = [connect(leader).makefile("rw")]

    def total(values: list[float]) -> list[float]:
        if rank == 0:
            rows = [values, *(json.loads(link.readline()) for link in links)]
            values = [sum(column) for column in zip(*rows, strict=True)]
        for link in links:
            link.write(json.dumps(values) + "\n")
            link.flush()
        return values if rank == 0 else list(json.loads(links[0].readline()))

    return total, "torch is not installed: the leader adds up over TCP"


def connect(host: str) -> socket.socket:
    """Connect to the leader, which might not be running yet."""
    deadline = time.monotonic() + START_UP
    while True:
        try:
            connection = socket.create_connection((host, PORT), timeout=START_UP)
        except OSError as error:
            if time.monotonic() > deadline:
                sys.exit(f"{host}:{PORT} did not answer within {START_UP:.0f} s: {error}")
            time.sleep(0.05)
        else:
            connection.settimeout(None)
            return connection


if __name__ == "__main__":
    main()
