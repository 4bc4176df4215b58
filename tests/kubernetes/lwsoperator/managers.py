"""Runs operand replicas as processes, because pods that kwok simulates do not serve webhooks.

The processes have the permissions of the operand's account, and the certificate that its pods would mount.

They have the rights of the operand's account, and the certificate that its pods would mount.
"""

import asyncio
import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from tests.kubernetes.install.conftest import Administrator
from tests.kubernetes.lwsoperator.waiting import until
from tests.kubernetes.manager.balancer import balanced
from tests.kubernetes.manager.replicas import Replica

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.metadata import CONFIGURATION, MANAGER
from leaderworkerset.install.certmanager import SERVING_SECRET
from leaderworkerset.install.operatornames import OPERATOR
from leaderworkerset.install.workload import CONFIGURATION_KEY
from leaderworkerset.webhooks.configurations import SERVICE_NAME

OUTSIDE = "lws-system"
"""The namespace of a manager outside a pod, which contains the manager's lease."""

PORT = 443

CONFIGURATIONS = tuple(
    f"{kind}webhookconfiguration/lws-{kind}-webhook-configuration" for kind in ("mutating", "validating")
)


class Managers:
    """The managers of an installation. The name of a replica is its release."""

    def __init__(self, administrator: Administrator, directory: Path, namespace: str = OPERATOR) -> None:
        self._administrator = administrator
        self._directory = directory
        self._in = ("-n", namespace)
        self._replicas: dict[str, Replica] = {}

    def start(self, name: str) -> None:
        """Start a replica, and wait until it is ready."""
        data = self._administrator.there(f"secret/{SERVING_SECRET}", *self._in)["data"]
        for file, text in data.items():
            (self._directory / file).write_bytes(base64.b64decode(text))
        replica = Replica(self._directory, name, self._kubeconfig(), self._configuration())
        self._replicas[name] = replica
        replica.start()
        asyncio.run(replica.await_ready())

    def _configuration(self) -> JSONObject:
        """Return the operand's configuration file with the certificate directory on this machine."""
        file = self._administrator.there(f"configmap/{CONFIGURATION}", *self._in)["data"][CONFIGURATION_KEY]
        sections = {name: section for name, section in yaml.safe_load(file).items() if isinstance(section, dict)}
        return sections | {"webhook": {"certDir": str(self._directory)}}

    def route(self, name: str) -> None:
        """Route webhook calls to a replica, and trust its certificate in the same way as cert-manager."""
        external = {"type": "ExternalName", "externalName": "localhost", "clusterIP": None, "clusterIPs": None}
        patch = json.dumps({"spec": external})
        self._administrator.kubectl("patch", f"service/{SERVICE_NAME}", *self._in, "--type=merge", "-p", patch)
        self._point(("service/port", self._replicas[name].webhooks))

    @contextmanager
    def served(self, name: str) -> Iterator[None]:
        """Let a replica listen at the address of the webhook Service, as pods do in a cluster with a network."""
        address = self._administrator.there(f"service/{SERVICE_NAME}", *self._in)["spec"]["clusterIP"]
        self._point()
        with balanced(address, PORT, [self._replicas[name].webhooks]):
            yield

    def _point(self, *values: tuple[str, object]) -> None:
        """Let the API server trust the certificate, as with cert-manager, and set further fields of each webhook."""
        authority = base64.b64encode((self._directory / "ca.crt").read_bytes()).decode()
        for configuration in CONFIGURATIONS:
            count = len(self._administrator.there(configuration)["webhooks"])
            operations = [
                {"op": "add", "path": f"/webhooks/{index}/clientConfig/{field}", "value": value}
                for index in range(count)
                for field, value in (("caBundle", authority), *values)
            ]
            self._administrator.kubectl("patch", configuration, "--type=json", "-p", json.dumps(operations))

    def stop(self, name: str) -> None:
        """Stop a replica gracefully."""
        asyncio.run(self._replicas[name].stop())

    def end(self) -> None:
        """Kill all replicas that are still running."""
        for replica in self._replicas.values():
            replica.end()

    def tail(self) -> str:
        """Return the end of each log."""
        return "\n".join(f"--- {name}\n{replica.tail()}" for name, replica in self._replicas.items())

    def _kubeconfig(self) -> Path:
        administrator = self._administrator
        config = json.loads(administrator.plane.kubeconfig.read_text())
        token = administrator.kubectl("create", "token", MANAGER, *self._in).strip()
        config["users"] = [{"name": "admin", "user": {"token": token}}]
        path = self._directory / "manager.kubeconfig"
        path.write_text(json.dumps(config))
        return path


@contextmanager
def served(administrator: Administrator, directory: Path, namespace: str = OPERATOR) -> Iterator[None]:
    """Run one manager behind the webhook Service until the context exits. Without a lease, it never leads."""
    for one in CONFIGURATIONS:
        until(lambda one=one: administrator.get(one) is not None, one)  # type: ignore[misc]
    running = Managers(administrator, directory, namespace)
    try:
        running.start("served")
        with running.served("served"):
            yield
    finally:
        running.end()


@contextmanager
def managers(administrator: Administrator, directory: Path) -> Iterator[Managers]:
    """Run managers outside pods until the context exits."""
    role = administrator.there("role/lws-leader-election-role", "-n", OPERATOR)
    binding = administrator.there("rolebinding/lws-leader-election-rolebinding", "-n", OPERATOR)
    account = f"system:serviceaccount:{OPERATOR}:{MANAGER}"
    administrator.kubectl("delete", "namespace", OUTSIDE, "--ignore-not-found")  # other tests use this namespace
    administrator.kubectl("create", "namespace", OUTSIDE)
    copies = [
        {
            "apiVersion": role["apiVersion"],
            "kind": "Role",
            "metadata": {"name": "outside", "namespace": OUTSIDE},
            "rules": role["rules"],
        },
        {
            "apiVersion": binding["apiVersion"],
            "kind": "RoleBinding",
            "metadata": {"name": "outside", "namespace": OUTSIDE},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "outside"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": account}],
        },
    ]
    administrator.kubectl("create", "-f", "-", objects=copies)
    found = Managers(administrator, directory)
    try:
        yield found
    finally:
        found.end()
        administrator.kubectl("delete", "namespace", OUTSIDE)
