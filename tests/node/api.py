"""Reads cluster objects through the socket of `kubectl proxy`, because separate commands are slow."""

import http.client
import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from kuberuntime.objects.meta import JSONObject

SECONDS: Final = 30.0
PATHS: Final = {
    "Event": "api/v1/namespaces/{}/events",
    "LeaderWorkerSet": "apis/leaderworkerset.x-k8s.io/v1/namespaces/{}/leaderworkersets",
    "PersistentVolumeClaim": "api/v1/namespaces/{}/persistentvolumeclaims",
    "Pod": "api/v1/namespaces/{}/pods",
    "Service": "api/v1/namespaces/{}/services",
}


class Refused(Exception):
    """The API server responded with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS)
        self.sock.connect(str(self._path))


@dataclass(frozen=True, slots=True)
class Api:
    """The API server behind a socket."""

    path: Path

    def read(self, path: str) -> JSONObject:
        """Return an object or a list."""
        connection = _Connection(self.path)
        try:
            connection.request("GET", f"/{path}", headers={"Accept": "application/json"})
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise Refused(answer.status, text)
        return cast("JSONObject", json.loads(text))
