"""Send requests to the router, and compare each response with the whole model.

python3 load.py http://127.0.0.1:8080 [COMMAND ...]

With a command, four clients ask again and again while it runs. Exit 0 only if no request failed and all answers are right.
"""

import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

from bytemodel import Model
from exchange import ask

PATIENCE = 10.0  # the seconds until the port must be available
CLIENTS = 4
PAUSE = 0.05  # the seconds between a response and the next request of a client, for a steady load


class Load:
    """Sends requests, checks the responses, and counts them."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.models: dict[str, Model] = {}
        self.right: dict[str, int] = {}
        self.errors: list[str] = []
        self.lock = threading.Lock()

    def ask(self, prompt: str) -> None:
        """Send one request. The tokens must match the version in the response."""
        try:
            status, answer = ask(self.address, "POST", "/generate", {"prompt": prompt, "tokens": 8})
        except OSError as error:
            self.errors.append(f"{type(error).__name__}: {error}")
            return
        if status != 200:
            self.errors.append(f"{status}: {answer['error']}")
            return
        with self.lock:
            model = self.models.setdefault(answer["version"], Model(answer["version"]))
            self.right.setdefault(model.version, 0)
            if answer["tokens"] == model.decode(model.prefill(prompt.encode()), 8):
                self.right[model.version] += 1
            else:
                self.errors.append(f"{prompt!r}: wrong tokens by {answer['prefill']} and {answer['decode']}")

    def ask_until(self, end: threading.Event, client: int) -> None:
        """Send requests repeatedly, at least once."""
        number = 0
        while not (number and end.wait(PAUSE)):
            self.ask(f"client {client} asks for the {number}. time")
            number += 1

    def wait_for_port(self) -> None:
        """Wait until the server listens."""
        deadline = time.monotonic() + PATIENCE
        while not self.has_listener():
            if time.monotonic() > deadline:
                sys.exit(f"nobody listens at {self.address} after {PATIENCE:g} s")
            time.sleep(0.1)

    def has_listener(self) -> bool:
        """Return whether the server listens."""
        try:
            ask(self.address, "GET", "/healthz")
        except ConnectionRefusedError:
            return False
        return True


def main() -> None:
    """Send requests while the command runs, or once from each client."""
    load, end = Load(urlsplit(sys.argv[1]).netloc), threading.Event()
    load.wait_for_port()
    clients = [threading.Thread(target=load.ask_until, args=(end, number)) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    code = subprocess.run(sys.argv[2:], check=False).returncode if sys.argv[2:] else 0
    end.set()
    for client in clients:
        client.join()
    for error in load.errors[:5]:
        print(error, file=sys.stderr)
    counts = ", ".join(f"{count} answers of version {version}" for version, count in sorted(load.right.items()))
    print(f"{len(load.errors)} requests failed, {counts}")
    sys.exit(code or bool(load.errors))


if __name__ == "__main__":
    main()
