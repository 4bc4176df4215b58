"""Defines the synchronous and asynchronous Python clients.

They build, apply, watch, scale and delete LeaderWorkerSets.

```
Client, AsyncClient          a connection to one namespace
Manifest, Container          what to apply, as typed values
View, Group, Rank            the current state
LogOptions, LogLine          which lines, and one of them
Diagnosis, Verdict           why something is not ready
Event, CommandResult         what happened, and how a command in a rank ended
WaitTimeoutError             the condition was not reached in time; the text says what was missing
KubeError, APIError          any error of a request, and what the API server refused (NotFoundError, ConflictError)
ConnectionFailedError        the API server was not reached
```
"""

from kuberuntime.errors import APIError, ConflictError, ConnectionFailedError, KubeError, NotFoundError
from leaderworkerset.api.policytypes import (
    GroupIdentity,
    GroupReplacementPolicy,
    PodTerminationPolicy,
    RestartPolicy,
    StartupPolicy,
    SubdomainPolicy,
    SubGroupPolicyType,
)
from lwsctl.client.asyncclient import AsyncClient, LogLine, LogOptions
from lwsctl.client.inspection import CommandResult, Event
from lwsctl.client.manifest import Container, Manifest
from lwsctl.client.syncclient import Client
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.groups import Group, Rank
from lwsctl.model.health import Verdict
from lwsctl.model.leaderworkerset import View
from lwsctl.observation.conditionwatch import WaitTimeoutError
from lwsctl.observation.podlogs import LogError

__all__ = [
    "APIError",
    "AsyncClient",
    "Client",
    "CommandResult",
    "ConflictError",
    "ConnectionFailedError",
    "Container",
    "Diagnosis",
    "Event",
    "Group",
    "GroupIdentity",
    "GroupReplacementPolicy",
    "KubeError",
    "LogError",
    "LogLine",
    "LogOptions",
    "Manifest",
    "NotFoundError",
    "PodTerminationPolicy",
    "Rank",
    "RestartPolicy",
    "StartupPolicy",
    "SubGroupPolicyType",
    "SubdomainPolicy",
    "Verdict",
    "View",
    "WaitTimeoutError",
]
