"""Simulates the Operator Lifecycle Manager, which installs a subscription from a file-based catalog.

It implements packages, channels and heads of a catalog, and install modes against the operator group of the namespace.
It implements permissions, Deployments and the status of a ClusterServiceVersion, and the upgrade edges of a newer
catalog.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from testkit.repository import ROOT
from tests.kubernetes.install.conftest import Administrator
from tests.kubernetes.lwsoperator.certmanager import definition
from tests.olmgraph import resolve

from kuberuntime.manifests.yamltext import SafeLoader
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource

FOLDER: Final = ROOT / "deploy" / "olm"
GROUP: Final = "operators.coreos.com"
SUBSCRIPTIONS: Final = Resource(GROUP, "v1alpha1", "subscriptions", "Subscription")
VERSIONS: Final = Resource(GROUP, "v1alpha1", "clusterserviceversions", "ClusterServiceVersion")
GROUPS: Final = Resource(GROUP, "v1", "operatorgroups", "OperatorGroup")


class ResolutionError(Exception):
    """No version satisfies a subscription. The message contains the reason."""


class UnsupportedGroupError(Exception):
    """A version does not support the operator group of its namespace. The message contains the reason."""


@dataclass(frozen=True)
class Manager:
    """Performs an installation for a cluster administrator.

    `catalog` contains the names of the packages in `folder`.
    """

    administrator: Administrator
    catalog: Sequence[str] = ("leader-worker-set", "lws-operator")
    folder: Path = FOLDER

    def serve(self) -> None:
        """Create the CRDs."""
        kinds = (SUBSCRIPTIONS, VERSIONS, GROUPS)
        self.administrator.kubectl(
            "apply", "--server-side", "-f", "-", objects=[_short(definition(kind)) for kind in kinds]
        )
        for kind in kinds:
            self.administrator.kubectl("wait", "--for=condition=established", f"crd/{kind.group_resource}")

    def install(self, subscription: Mapping[str, Any], group: Mapping[str, Any]) -> None:
        """Install the operator that a subscription requests, or report the reason for a failure in its status."""
        namespace = subscription["metadata"]["namespace"]
        self._apply(group, subscription)
        try:
            version = self._resolve(subscription["spec"])
        except ResolutionError as error:
            failed = {"type": "ResolutionFailed", "status": "True", "reason": "ConstraintsNotSatisfiable"}
            self._apply({**subscription, "status": {"conditions": [failed | {"message": str(error)}]}})
            return
        version["metadata"]["namespace"] = namespace
        self._apply({**subscription, "status": {"installedCSV": version["metadata"]["name"]}})
        try:
            check_mode(version, group)
        except UnsupportedGroupError as error:
            self._report(version, "Failed", "UnsupportedOperatorGroup", str(error))
            return
        others = [one for one in self._bundle(subscription["spec"]["name"]) if self._is_installed(one, version)]
        for one in others:
            if one["kind"] != CUSTOM_RESOURCE_DEFINITIONS.kind:
                one["metadata"]["namespace"] = namespace
        strategy = version["spec"]["install"]["spec"]
        deployments = self._deployments(strategy, namespace)
        self._apply(*others, version, *self._accounts(strategy, namespace), *deployments)
        for one in deployments:
            words = ("wait", f"deployment/{one['metadata']['name']}", "-n", namespace)
            self.administrator.kubectl(*words, "--for=condition=available", "--timeout=60s")
        self._report(version, "Succeeded", "InstallSucceeded", "install strategy completed with no errors")

    def upgrade(self, subscription: Mapping[str, Any], group: Mapping[str, Any]) -> str | None:
        """Install the version to which the catalog upgrades the installed version.

        Return its name, or None if there is none.
        """
        live = self.administrator.there(f"sub/{subscription['metadata']['name']}", "-n", _namespace(subscription))
        installed = live["status"]["installedCSV"]
        found = resolve(self._channel(subscription["spec"]), installed)
        if found is not None:
            self.install(subscription, group)
            self.administrator.kubectl("delete", f"csv/{installed}", "-n", _namespace(subscription))
        return found

    def _report(self, version: Mapping[str, Any], phase: str, reason: str, message: str) -> None:
        self._apply({**version, "status": {"phase": phase, "reason": reason, "message": message}})

    def _apply(self, *objects: Mapping[str, Any]) -> None:
        self.administrator.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", objects=list(objects))

    def _resolve(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return the head of the channel."""
        entries = [entry["name"] for entry in self._channel(spec)["entries"]]
        bundle = self._blobs()["olm.bundle", entries[-1]]
        (version,) = [one for one in self._bundle(bundle["package"]) if one["kind"] == VERSIONS.kind]
        assert version["metadata"]["name"] == bundle["name"]
        return version

    def _blobs(self) -> dict[tuple[str, str], dict[str, Any]]:
        files = [self.folder / "catalog" / package / "catalog.yaml" for package in self.catalog]
        return {(one["schema"], one["name"]): one for one in load(*files)}

    def _channel(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return the channel of a subscription. Raise an error if the catalog does not contain it."""
        blobs = self._blobs()
        if ("olm.package", spec["name"]) not in blobs:
            raise ResolutionError(f"no operators found from catalog: package {spec['name']}")
        channels = [one for (kind, _), one in blobs.items() if kind == "olm.channel" and one["package"] == spec["name"]]
        named = [channel for channel in channels if channel["name"] == spec["channel"]]
        if not named:
            raise ResolutionError(f"no operators found in channel {spec['channel']} of package {spec['name']}")
        return named[0]

    def _bundle(self, package: str) -> Sequence[dict[str, Any]]:
        return load(*sorted((self.folder / package / "manifests").glob("*.yaml")))

    def _is_installed(self, obj: Mapping[str, Any], version: Mapping[str, Any]) -> bool:
        """Return whether a bundle object is installed. Optional objects are skipped if their kind is not served."""
        if obj["kind"] == VERSIONS.kind:
            return False
        package, _, _ = version["metadata"]["name"].partition(".")
        (metadata,) = load(self.folder / package / "metadata/properties.yaml")
        group, _, _ = obj["apiVersion"].rpartition("/")
        mine = {"group": group, "kind": obj["kind"], "name": obj["metadata"]["name"]}
        optional = [one for each in metadata["properties"] for one in each["value"]["manifests"]]
        return mine not in optional or self.administrator.get(f"crd/{obj['kind'].lower()}s.{group}") is not None

    def _accounts(self, strategy: Mapping[str, Any], namespace: str) -> list[dict[str, Any]]:
        """Return service accounts with their permissions in the cluster and in the namespace."""
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


def _namespace(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"]["namespace"])


def check_mode(version: Mapping[str, Any], group: Mapping[str, Any]) -> None:
    """Raise an error if a version does not support the operator group of its namespace."""
    mode = "OwnNamespace" if group["spec"] else "AllNamespaces"
    supported = {one["type"] for one in version["spec"]["installModes"] if one["supported"]}
    if mode not in supported:
        raise UnsupportedGroupError(f"{mode} InstallModeType not supported, only {sorted(supported)}")


def load(*paths: Path) -> list[dict[str, Any]]:
    """Return all objects in these files."""
    return [obj for path in paths for obj in yaml.load_all(path.read_text(), SafeLoader) if obj]


def _short(found: dict[str, Any]) -> dict[str, Any]:
    """Add the short names of kinds."""
    names = {"Subscription": "sub", "ClusterServiceVersion": "csv", "OperatorGroup": "og"}
    found["spec"]["names"]["shortNames"] = [names[found["spec"]["names"]["kind"]]]
    if found["spec"]["names"]["kind"] == VERSIONS.kind:
        (version,) = found["spec"]["versions"]
        version["additionalPrinterColumns"] = [{"name": "Phase", "type": "string", "jsonPath": ".status.phase"}]
    return found
