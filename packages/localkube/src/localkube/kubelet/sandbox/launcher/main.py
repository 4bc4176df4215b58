"""Runs the launcher process, which is started as `python -I -S -c <loader> <configuration as JSON>`.

It reports the result of its start once, `{"ready": pid}` or `{"refused": reason}`, and then serves.
"""

import gc
import json
import os
import socket
import sys
from contextlib import suppress
from typing import Any

from localkube.kubelet.processes import descriptors
from localkube.kubelet.processes.kernelerrors import explain

from .isolation import NamespaceHost
from .kernel import linuxnamespaces, syscalls
from .launcherconnection import LauncherConnection
from .launcherlog import BoundedLog
from .launcherloop import Ground, Server
from .plainhost import PlainHost


def main() -> None:
    """Start with the configuration: isolation, network, run directory, cluster process, and limit of open files."""
    sys.stderr = BoundedLog(sys.stderr.fileno())
    configuration: dict[str, Any] = json.loads(sys.argv[1])
    link = LauncherConnection(socket.socket(fileno=configuration["fd"]))
    link.sock.set_inheritable(False)
    isolated = configuration["isolation"] == "namespaces"
    try:
        if isolated:
            linuxnamespaces.enter(configuration["parent"], lambda reason: link.send({"refused": reason}))
        ground: Ground = NamespaceHost(configuration["run"], configuration["gateway"]) if isolated else PlainHost()
    except OSError as error:
        link.send({"refused": explain(error)})
        os._exit(1)
    with suppress(AttributeError):  # not Linux
        syscalls.set_process_name("kube-launcher")
    link.send({"ready": ground.own_pid()})
    gc.collect()
    gc.freeze()  # a garbage collection in a child would touch, and therefore copy, every object
    descriptors.raise_limit()
    os.set_inheritable(configuration["identity"], False)
    limits = {"confined": isolated, "files": configuration["files"]}
    Server(link, ground, identity=configuration["identity"], **limits).run()
