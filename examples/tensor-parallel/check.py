"""Ask a running group and compare its answer with the unsplit model's.

python3 check.py http://127.0.0.1:8080 [prompt]
"""

import json
import sys
import urllib.request

import numpy as np
from model import Shard, generate


def main() -> None:
    """Exit 0 only if every token is the same and every score within rounding."""
    url, prompt = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "one leader, its workers"
    body = json.dumps({"prompt": prompt, "tokens": 8}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{url}/generate", body), timeout=60) as response:
        answer = json.load(response)
    tokens, scores = generate(prompt.encode(), 8, Shard(0, 1).part)
    difference = float(np.abs(scores - np.array(answer["scores"])).max())
    if tokens != answer["tokens"] or difference > 1e-9:
        sys.exit(f"the group answers {answer['tokens']}, the unsplit model {tokens}; scores differ by {difference:.3g}")
    print(f"{answer['ranks']} ranks answer as one: tokens {tokens}, largest difference {difference:.1e}")


if __name__ == "__main__":
    main()
