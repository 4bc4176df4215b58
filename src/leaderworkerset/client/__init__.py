"""The Python client: build, apply, await, read, follow, scale and delete LeaderWorkerSets; synchronous or not.

```
Client, AsyncClient          a connection to one namespace
Manifest, Container          what to apply, as typed values
View, Group, Rank            what is there
LogOptions, LogLine          which lines, and one of them
WaitTimeoutError             it did not come in time; the text says what was missing
KubeError, NotFoundError     what the API server said, and the errors between it and this program
```
"""

from kuberuntime.errors import APIError, ConflictError, KubeError, NotFoundError
from leaderworkerset.api.leaderworkerset import RestartPolicy, StartupPolicy
from leaderworkerset.client.asyncclient import AsyncClient, LogLine, LogOptions
from leaderworkerset.client.manifest import Container, Manifest
from leaderworkerset.client.syncclient import Client
from leaderworkerset.observation.logs import LogError
from leaderworkerset.observation.waiting import WaitTimeoutError
from leaderworkerset.views.groups import Group, Rank, View

__all__ = [
    "APIError",
    "AsyncClient",
    "Client",
    "ConflictError",
    "Container",
    "Group",
    "KubeError",
    "LogError",
    "LogLine",
    "LogOptions",
    "Manifest",
    "NotFoundError",
    "Rank",
    "RestartPolicy",
    "StartupPolicy",
    "View",
    "WaitTimeoutError",
]
