"""Serves the split model. The leader serves HTTP, and distributes every step to its workers.

    POST /generate  {"prompt": "text", "tokens": 8}  ->  {"tokens": [...], "scores": [...], "ranks": 4}
    GET  /healthz   200 once every rank of the group is connected

Workers connect to the leader at LWS_LEADER_ADDRESS, say who they are, and then answer each state with their part.
"""

import json
import os
import socket
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from model import Matrix, Shard, generate

HTTP_PORT, RANKS_PORT = 8080, 29600
START_UP = 60.0  # the seconds that the ranks wait for each other
BIND = os.environ.get("POD_IP", "0.0.0.0")


def send(connection: socket.socket, step: int, state: Matrix) -> None:
    """Send a step number and a matrix of (positions, width)."""
    connection.sendall(struct.pack("!IIi", *state.shape, step) + state.tobytes())


def receive(connection: socket.socket) -> tuple[int, Matrix]:
    """Receive data from `send`."""
    rows, columns, step = struct.unpack("!IIi", exactly(connection, 12))
    return step, np.frombuffer(exactly(connection, rows * columns * 8)).reshape(rows, columns)


def exactly(connection: socket.socket, count: int) -> bytes:
    """Receive `count` bytes, or exit, because a lost rank requires the recreation of the group."""
    data = bytearray()
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            sys.exit("another rank closed its connection")
        data += piece
    return bytes(data)


class Group:
    """The state of the leader: its shard, and a connection to every worker."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.shard = Shard(0, size)
        self.workers: dict[int, socket.socket] = {}
        self.lock = threading.Lock()

    def gather_workers(self) -> None:
        """Accept the workers, each of which sends its rank."""
        with socket.create_server((BIND, RANKS_PORT)) as server:
            while len(self.workers) < self.size - 1:
                connection, _ = server.accept()
                (rank,) = struct.unpack("!I", exactly(connection, 4))
                self.workers[rank] = connection
                print(f"rank {rank} is here, {len(self.workers) + 1} of {self.size}", flush=True)

    def is_whole(self) -> bool:
        """Return whether every worker is connected, which is required for correct responses."""
        return len(self.workers) == self.size - 1

    def compute(self, step: int, state: Matrix) -> Matrix:
        """Distribute the state, compute the own part, and add the parts of the workers."""
        for connection in self.workers.values():
            send(connection, step, state)
        total = self.shard.part(step, state)
        for rank in sorted(self.workers):
            total = total + receive(self.workers[rank])[1]
        return total


def serve_http(group: Group) -> None:
    """Serve requests until the process exits."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply(200 if group.is_whole() else 503, {"ready": group.is_whole()})

        def do_POST(self) -> None:
            if not group.is_whole():
                self.reply(503, {"error": f"{len(group.workers) + 1} of {group.size} ranks are here: ask again later"})
                return
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with group.lock:
                tokens, scores = generate(request["prompt"].encode(), int(request["tokens"]), group.compute)
            self.reply(200, {"tokens": tokens, "scores": scores.tolist(), "ranks": group.size})

        def reply(self, status: int, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    ThreadingHTTPServer((BIND, HTTP_PORT), Handler).serve_forever()


def work(leader: str, rank: int, size: int) -> None:
    """Compute the parts of this rank for the leader."""
    shard = Shard(rank, size)
    connection = connect(leader)
    connection.sendall(struct.pack("!I", rank))
    print(f"rank {rank} of {size} serves {leader}", flush=True)
    while True:
        step, state = receive(connection)
        send(connection, step, shard.part(step, state))


def connect(leader: str) -> socket.socket:
    """Connect to a leader that might not be running yet."""
    deadline = time.monotonic() + START_UP
    while True:
        try:
            return socket.create_connection((leader, RANKS_PORT))
        except OSError as error:
            if time.monotonic() > deadline:
                sys.exit(f"{leader}:{RANKS_PORT} did not answer within {START_UP:.0f} s: {error}")
            time.sleep(0.05)


def main() -> None:
    """Run as leader or worker, depending on the environment."""
    rank, size = int(os.environ["LWS_WORKER_INDEX"]), int(os.environ["LWS_GROUP_SIZE"])
    if rank:
        work(os.environ["LWS_LEADER_ADDRESS"], rank, size)
    group = Group(size)
    threading.Thread(target=group.gather_workers, daemon=True).start()
    serve_http(group)


if __name__ == "__main__":
    main()
