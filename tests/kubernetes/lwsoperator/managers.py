"""The replicas of the operand as processes: kwok plays the Deployment's pods, and they answer no webhook.

They have the rights of the operand's account, and the certificate that its pods would mount.
"""

import asyncio
import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from tests.kubernetes.lwsoperator.conftest import IN, Site
from tests.kubernetes.manager.replicas import Replica

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.metadata import CONFIGURATION, MANAGER
from leaderworkerset.install.certmanager import SERVING_SECRET
from leaderworkerset.install.workload import CONFIGURATION_KEY
from leaderworkerset.operator.operatornames import OPERATOR
from leaderworkerset.webhooks.configurations import SERVICE_NAME

OUTSIDE = "lws-system"
"""The namespace of a manager that runs outside of a pod: its lease is there."""

CONFIGURATIONS = tuple(
    f"{kind}webhookconfiguration/lws-{kind}-webhook-configuration" for kind in ("mutating", "validating")
)


class Managers:
    """Managers of a site; what a replica is called is which release it is of."""

    def __init__(self, site: Site, directory: Path) -> None:
        self._site = site
        self._directory = directory
        self._replicas: dict[str, Replica] = {}

    def start(self, name: str) -> None:
        """Start a replica, and wait until it is ready."""
        data = self._site.administrator.there(f"secret/{SERVING_SECRET}", *IN)["data"]
        for file, text in data.items():
            (self._directory / file).write_bytes(base64.b64decode(text))
        replica = Replica(self._directory, name, self._kubeconfig(), self._configuration())
        self._replicas[name] = replica
        replica.start()
        asyncio.run(replica.await_ready())

    def _configuration(self) -> JSONObject:
        """Return the file of the operand, with the directory of its certificates as it is mounted here."""
        file = self._site.administrator.there(f"configmap/{CONFIGURATION}", *IN)["data"][CONFIGURATION_KEY]
        sections = {name: section for name, section in yaml.safe_load(file).items() if isinstance(section, dict)}
        return sections | {"webhook": {"certDir": str(self._directory)}}

    def route(self, name: str) -> None:
        """Have the API server call the webhooks of a replica, and trust its certificate, as cert-manager would."""
        administrator = self._site.administrator
        external = {"type": "ExternalName", "externalName": "localhost", "clusterIP": None, "clusterIPs": None}
        patch = json.dumps({"spec": external})
        administrator.kubectl("patch", f"service/{SERVICE_NAME}", *IN, "--type=merge", "-p", patch)
        authority = base64.b64encode((self._directory / "ca.crt").read_bytes()).decode()
        for configuration in CONFIGURATIONS:
            count = len(administrator.there(configuration)["webhooks"])
            values = (("caBundle", authority), ("service/port", self._replicas[name].webhooks))
            operations = [
                {"op": "add", "path": f"/webhooks/{index}/clientConfig/{field}", "value": value}
                for index in range(count)
                for field, value in values
            ]
            administrator.kubectl("patch", configuration, "--type=json", "-p", json.dumps(operations))

    def stop(self, name: str) -> None:
        """End a replica in an orderly way."""
        asyncio.run(self._replicas[name].stop())

    def end(self) -> None:
        """Make sure that all have ended."""
        for replica in self._replicas.values():
            replica.end()

    def tail(self) -> str:
        """Return the end of all logs."""
        return "\n".join(f"--- {name}\n{replica.tail()}" for name, replica in self._replicas.items())

    def _kubeconfig(self) -> Path:
        administrator = self._site.administrator
        config = json.loads(administrator.plane.kubeconfig.read_text())
        token = administrator.kubectl("create", "token", MANAGER, *IN).strip()
        config["users"] = [{"name": "admin", "user": {"token": token}}]
        path = self._directory / "manager.kubeconfig"
        path.write_text(json.dumps(config))
        return path


@contextmanager
def managers(site: Site, directory: Path) -> Iterator[Managers]:
    """Let managers run outside of pods, until the context is left."""
    administrator = site.administrator
    role = administrator.there("role/lws-leader-election-role", *IN)
    binding = administrator.there("rolebinding/lws-leader-election-rolebinding", *IN)
    account = f"system:serviceaccount:{OPERATOR}:{MANAGER}"
    administrator.kubectl("delete", "namespace", OUTSIDE, "--ignore-not-found")  # other tests install there
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
    found = Managers(site, directory)
    try:
        yield found
    finally:
        found.end()
        administrator.kubectl("delete", "namespace", OUTSIDE)
