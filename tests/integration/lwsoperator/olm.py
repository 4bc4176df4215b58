"""A stand-in for the Operator Lifecycle Manager: it resolves a subscription in a file-based catalog, and installs.

What it does of the real one: packages, channels and heads of a catalog; install modes against the operator group of the
namespace; permissions and Deployments of a ClusterServiceVersion. It knows nothing of upgrades.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from tests.integration.install.conftest import Administrator
from tests.integration.lwsoperator.certmanager import definition

from kuberuntime.objects.resources import Resource

ROOT: Final = Path(__file__).parents[3]
FOLDER: Final = ROOT / "deploy" / "olm"
GROUP: Final = "operators.coreos.com"
SUBSCRIPTIONS: Final = Resource(GROUP, "v1alpha1", "subscriptions", "Subscription")
VERSIONS: Final = Resource(GROUP, "v1alpha1", "clusterserviceversions", "ClusterServiceVersion")
GROUPS: Final = Resource(GROUP, "v1", "operatorgroups", "OperatorGroup")


class ResolutionError(Exception):
    """No version for a subscription; the text says why."""


@dataclass(frozen=True)
class Manager:
    """Acts for the administrator of a cluster."""

    administrator: Administrator

    def serve(self) -> None:
        """Define its kinds."""
        kinds = (SUBSCRIPTIONS, VERSIONS, GROUPS)
        self.administrator.kubectl(
            "apply", "--server-side", "-f", "-", objects=[_short(definition(kind)) for kind in kinds]
        )
        for kind in kinds:
            self.administrator.kubectl("wait", "--for=condition=established", f"crd/{kind.group_resource}")

    def install(self, subscription: Mapping[str, Any], group: Mapping[str, Any]) -> dict[str, Any]:
        """Install what a subscription asks for; return its ClusterServiceVersion."""
        namespace = subscription["metadata"]["namespace"]
        version = self._resolve(subscription["spec"], "OwnNamespace" if group["spec"] else "AllNamespaces")
        version["metadata"]["namespace"] = namespace
        definitions = [one for one in self._bundle(subscription["spec"]["name"]) if one != version]
        kinds = [one for one in definitions if one["kind"] == "CustomResourceDefinition"]
        strategy = version["spec"]["install"]["spec"]
        objects = [*kinds, version, *self._accounts(strategy, namespace), *self._deployments(strategy, namespace)]
        self.administrator.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", objects=objects)
        return version

    def _resolve(self, spec: Mapping[str, Any], mode: str) -> dict[str, Any]:
        """Return the head of the channel, where it may be installed like this."""
        blobs: dict[tuple[str, str], dict[str, Any]] = {
            (one["schema"], one["name"]): one for one in load(*FOLDER.glob("catalog/*/*.yaml"))
        }
        if ("olm.package", spec["name"]) not in blobs:
            raise ResolutionError(f"no operators found from catalog: package {spec['name']}")
        channels = [one for (kind, _), one in blobs.items() if kind == "olm.channel" and one["package"] == spec["name"]]
        entries = [entry["name"] for one in channels if one["name"] == spec["channel"] for entry in one["entries"]]
        if not entries:
            raise ResolutionError(f"no operators found in channel {spec['channel']} of package {spec['name']}")
        bundle = blobs["olm.bundle", entries[-1]]
        (version,) = [one for one in self._bundle(bundle["package"]) if one["kind"] == VERSIONS.kind]
        assert version["metadata"]["name"] == bundle["name"]
        supported = {one["type"] for one in version["spec"]["installModes"] if one["supported"]}
        if mode not in supported:
            raise ResolutionError(f"UnsupportedOperatorGroup: {mode} is not among {sorted(supported)}")
        return version

    def _bundle(self, package: str) -> Sequence[dict[str, Any]]:
        return load(*sorted((FOLDER / package / "manifests").glob("*.yaml")))

    def _accounts(self, strategy: Mapping[str, Any], namespace: str) -> list[dict[str, Any]]:
        """Return accounts with their rights, in the cluster and in the namespace."""
        found: list[dict[str, Any]] = []
        for prefix, field in (("Cluster", "clusterPermissions"), ("", "permissions")):
            for one in strategy[field]:
                name = one["serviceAccountName"]
                own = {"name": f"olm-{name}"} | ({} if prefix else {"namespace": namespace})
                subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
                rbac = "rbac.authorization.k8s.io"
                reference = {"apiGroup": rbac, "kind": f"{prefix}Role", "name": own["name"]}
                account = {"name": name, "namespace": namespace}
                head = {"apiVersion": f"{rbac}/v1", "metadata": own}
                found += [
                    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
                    head | {"kind": f"{prefix}Role", "rules": one["rules"]},
                    head | {"kind": f"{prefix}RoleBinding", "roleRef": reference, "subjects": [subject]},
                ]
        return [one for index, one in enumerate(found) if one not in found[:index]]

    def _deployments(self, strategy: Mapping[str, Any], namespace: str) -> list[dict[str, Any]]:
        return [
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": one["name"], "namespace": namespace, "labels": one["label"]},
                "spec": one["spec"],
            }
            for one in strategy["deployments"]
        ]


def load(*paths: Path) -> list[dict[str, Any]]:
    """Return all objects of files."""
    return [obj for path in paths for obj in yaml.load_all(path.read_text(), yaml.CSafeLoader) if obj]


def _short(found: dict[str, Any]) -> dict[str, Any]:
    """Have the short names that people type."""
    names = {"Subscription": "sub", "ClusterServiceVersion": "csv", "OperatorGroup": "og"}
    found["spec"]["names"]["shortNames"] = [names[found["spec"]["names"]["kind"]]]
    return found
