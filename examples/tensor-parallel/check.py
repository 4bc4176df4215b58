"""Send a request to a running group, and compare its response with the unsplit model.

python3 check.py http://127.0.0.1:8080 [prompt]
"""

import json
import socket
import sys
import time
import urllib.error
import urllib.request
from typing import Any

import numpy as np
from model import Shard, generate

PATIENCE = 10.0
"""The number of seconds until the port or the name must be available."""


def ask(url: str, question: dict[str, Any]) -> Any:
    """Send a request, and return the response."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(url, json.dumps(question).encode(), timeout=60) as response:
                return json.load(response)
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError | socket.gaierror) or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def main() -> None:
    """Exit with code 0 only if every token is the same, and every score is equal except for rounding."""
    url, prompt = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "one leader, its workers"
    answer = ask(f"{url}/generate", {"prompt": prompt, "tokens": 8})
    tokens, scores = generate(prompt.encode(), 8, Shard(0, 1).part)
    difference = float(np.abs(scores - np.array(answer["scores"])).max())
    if tokens != answer["tokens"] or difference > 1e-9:
        sys.exit(f"the group answers {answer['tokens']}, the unsplit model {tokens}; scores differ by {difference:.3g}")
    print(f"{answer['ranks']} ranks answer as one: tokens {tokens}, largest difference {difference:.1e}")


if __name__ == "__main__":
    main()
