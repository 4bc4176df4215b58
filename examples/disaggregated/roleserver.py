"""A prefill or a decode server, depending on the label of its pod.

    POST /prefill  {"prompt": "text", "tokens": 8, "decode": "host:port"}  reads the prompt, and passes the state on
    POST /decode   {"state": [...], "tokens": 8, "version": "1"}           ->  {"tokens": [...]}
    GET  /healthz  200 once the router knows this server

It makes itself known to the router every second. When it is told to end, it takes its leave first: the router answers when
nothing that it has sent here is under way any more.
"""

import os
import signal
import threading
from typing import Any

from bytemodel import Model
from exchange import Answer, ask, server

ROLE, REVISION = os.environ["ROLE"], os.environ["REVISION"]
POD, HOST, PORT = os.environ["POD_NAME"], os.environ["POD_IP"], 8000
ROUTER = os.environ["ROUTER"]

model = Model(os.environ["MODEL_VERSION"])
known = threading.Event()


def health(_: Any) -> Answer:
    """Return whether this server receives requests."""
    return (200 if known.is_set() else 503), {"known": known.is_set()}


def prefill(request: Any) -> Answer:
    """Process the prompt, pass the state to the decode server, and return its response."""
    state = model.prefill(request["prompt"].encode())
    told = {"state": state, "tokens": request["tokens"], "version": model.version}
    try:
        status, answer = ask(request["decode"], "POST", "/decode", told)
    except OSError as error:
        return 502, {"error": f"{request['decode']}: {error}"}
    return status, answer | {"prefill": POD}


def decode(request: Any) -> Answer:
    """Continue from a state, which must have the same version."""
    if request["version"] != model.version:
        return 409, {"error": f"a state of version {request['version']} came to {POD} of version {model.version}"}
    tokens = model.decode(request["state"], request["tokens"])
    return 200, {"tokens": tokens, "version": model.version, "decode": POD}


def make_known() -> None:
    """Register this server with the router, which might not be running yet or have restarted."""
    me = {"address": f"{HOST}:{PORT}", "role": ROLE, "revision": REVISION}
    try:
        status, _ = ask(ROUTER, "POST", "/servers", me)
    except OSError as error:
        print(f"{ROUTER} does not answer yet: {error}", flush=True)
        return
    if status == 200 and not known.is_set():
        print(f"{ROLE} of version {model.version} is known to the router", flush=True)
        known.set()


def main() -> None:
    """Serve until SIGTERM, and then until the router has removed this server."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # it is awaited
    routes = {"GET /healthz": health, "POST /prefill": prefill, "POST /decode": decode}
    threading.Thread(target=server(HOST, PORT, routes).serve_forever, daemon=True).start()
    make_known()
    while signal.sigtimedwait({signal.SIGTERM}, 1.0 if known.is_set() else 0.1) is None:
        make_known()
    try:
        ask(ROUTER, "DELETE", "/servers", {"address": f"{HOST}:{PORT}"})
    except OSError as error:
        print(f"{ROUTER} could not be told of the end: {error}", flush=True)


if __name__ == "__main__":
    main()
