"""Ring all-reduce over TCP with the standard library, a small program that requires a complete and correct group.

Each rank of a group knows three things from its environment: the leader's address, the size of the group and its own
index. From these it finds its neighbors, and the ranks add up their vectors around the ring. Every rank then checks
the result against what it computes alone. A wrong name, order, size or group cannot end in a right sum: neighbors
introduce themselves with group and rank, and the vectors depend on both.

    python3 allreduce.py [--rounds N] [--length N]      N = 0 rounds: until stopped
"""

import argparse
import array
import os
import signal
import socket
import struct
import sys
import time
import zlib
from typing import TypeAlias

PORT = int(os.environ.get("ALLREDUCE_PORT", "29500"))
Vector: TypeAlias = "array.array[int]"
START_UP = 60.0  # the seconds that a rank waits until its neighbors are running


class Ring:
    """The two connections of a rank, to the next rank and from the previous rank."""

    def __init__(self, leader: str, size: int, rank: int) -> None:
        self.leader, self.size, self.rank = leader, size, rank
        bind = os.environ.get("POD_IP", "0.0.0.0")
        with socket.create_server((bind, PORT)) as server:
            server.settimeout(START_UP)
            self.next = connect(address_of(leader, (rank + 1) % size))
            self.next.sendall(introduce(leader, rank))
            self.previous, _ = server.accept()
        self.previous.settimeout(None)
        expected = introduce(leader, (rank - 1) % size)
        found = receive(self.previous, len(expected))
        if found != expected:
            sys.exit(f"the neighbor is {found!r}, not {expected!r}")

    def exchange(self, data: bytes) -> bytes:
        """Send to the next rank, and receive the same amount from the previous rank, in small chunks."""
        answer = bytearray()
        for start in range(0, len(data), 16384):
            piece = data[start : start + 16384]
            self.next.sendall(piece)
            answer += receive(self.previous, len(piece))
        return bytes(answer)


def address_of(leader: str, rank: int) -> str:
    """Return the DNS name of a rank: `<lws>-<group>.…` for a leader, and `<lws>-<group>-<rank>.…` for a worker."""
    host, _, domain = leader.partition(".")
    return f"{host}.{domain}" if rank == 0 else f"{host}-{rank}.{domain}"


def introduce(leader: str, rank: int) -> bytes:
    """Build the fixed-size greeting with the group and the rank."""
    return struct.pack("!II", zlib.crc32(leader.encode()), rank)


def connect(host: str) -> socket.socket:
    """Connect to a neighbor that might not be running yet."""
    deadline = time.monotonic() + START_UP
    while True:
        try:
            return socket.create_connection((host, PORT), timeout=START_UP)
        except OSError as error:
            if time.monotonic() > deadline:
                sys.exit(f"{host}:{PORT} did not answer within {START_UP:.0f} s: {error}")
            time.sleep(0.05)


def receive(connection: socket.socket, count: int) -> bytes:
    """Receive exactly `count` bytes."""
    data = bytearray()
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            sys.exit("a neighbor closed its connection")
        data += piece
    return bytes(data)


def vector(leader: str, rank: int, round_: int, length: int) -> Vector:
    """Return the vector of a rank, which differs for every rank, group and round."""
    seed = zlib.crc32(f"{leader}/{rank}/{round_}".encode())
    return array.array("q", ((seed + index * 2654435761) % 1_000_003 for index in range(length)))


def all_reduce(ring: Ring, own: Vector) -> Vector:
    """Add up the vectors of all ranks with reduce-scatter and all-gather, in 2 x (size - 1) steps."""
    size, rank = ring.size, ring.rank
    chunks = [own[index * len(own) // size : (index + 1) * len(own) // size] for index in range(size)]
    width = -(-len(own) // size)
    for step in range(size - 1):
        send, receive_ = (rank - step) % size, (rank - step - 1) % size
        incoming = pass_on(ring, chunks[send], len(chunks[receive_]), width)
        chunks[receive_] = array.array("q", map(int.__add__, chunks[receive_], incoming))
    for step in range(size - 1):
        send, receive_ = (rank + 1 - step) % size, (rank - step) % size
        chunks[receive_] = pass_on(ring, chunks[send], len(chunks[receive_]), width)
    return array.array("q", (value for chunk in chunks for value in chunk))


def pass_on(ring: Ring, outgoing: Vector, expected: int, width: int) -> Vector:
    """Send one chunk, and return the received chunk. Every chunk is padded to `width` elements."""
    padded = outgoing.tobytes().ljust(width * outgoing.itemsize, b"\0")
    return array.array("q", ring.exchange(padded)[: expected * outgoing.itemsize])


def main() -> None:
    """Run the rounds, and verify each of them."""
    parser = argparse.ArgumentParser(description="Ring all-reduce over the ranks of a group.")
    parser.add_argument("--rounds", type=int, default=3, help="how many rounds; 0: until stopped")
    parser.add_argument("--length", type=int, default=4096, help="elements of each vector")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))

    leader = os.environ["LWS_LEADER_ADDRESS"]
    size = int(os.environ["LWS_GROUP_SIZE"])
    rank = int(os.environ["LWS_WORKER_INDEX"])
    print(f"rank {rank} of {size}, host {socket.gethostname()}, leader {leader}", flush=True)

    ring = Ring(leader, size, rank)
    round_ = 0
    while options.rounds == 0 or round_ < options.rounds:
        total = all_reduce(ring, vector(leader, rank, round_, options.length))
        vectors = [vector(leader, other, round_, options.length) for other in range(size)]
        expected = array.array("q", map(sum, zip(*vectors, strict=True)))
        if total != expected:
            sys.exit(f"round {round_}: the sum is wrong")
        if round_ < 3 or round_ % 100 == 0:
            print(f"round {round_}: {len(total)} sums over {size} ranks are right, total {sum(total)}", flush=True)
        round_ += 1
        if options.rounds == 0:
            time.sleep(0.2)
    print(f"all-reduce verified: {round_} rounds over {size} ranks", flush=True)


if __name__ == "__main__":
    main()
