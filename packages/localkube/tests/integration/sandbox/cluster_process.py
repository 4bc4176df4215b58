"""Runs a process with a runner and two pods, for tests that kill it or start it as a different user.

`python cluster_process.py DIRECTORY NETWORK ISOLATION` prints one line of JSON when all pods run, and then waits.
"""

import asyncio
import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from tests.integration.sandbox.harness import machine

from localkube.kubelet.processes.runner import Mount

STUBBORN_DAEMON = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("daemon", flush=True)
    time.sleep(1000)
time.sleep(1000)
"""
REPORT = "hostname; id -u; cat /etc/hosts; hostname >/lws-volume/$(hostname); ls /lws-volume"


async def main() -> None:
    """Start two pods, print their state, and wait."""
    directory, network, isolation = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    volume = directory / "volume"
    volume.mkdir()
    async with machine(
        directory,
        network="isolated" if network == "isolated" else "shared",
        isolation="plain" if isolation == "plain" else "namespaces",
    ) as made:
        mounts = (Mount(volume, "/lws-volume"),) if made.capabilities.has_namespaces else ()
        seen = []
        for name in ("a", "b"):
            pod = await made.pod(name)
            seen.append((await made.sh(pod, REPORT, mounts=mounts))[1] if mounts else "")
            program = await made.start(pod, "python3", "-c", STUBBORN_DAEMON)
            await program.line()
            await made.start(pod, stub_ports=(48085,))
        facts = {
            "pid": os.getpid(),
            "seen": seen,
            "addresses": made.addresses,
            "namespaces": made.capabilities.has_namespaces,
            "network": made.capabilities.network,
            "lost": made.capabilities.missing,
        }
        sys.stdout.write(json.dumps(facts) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
