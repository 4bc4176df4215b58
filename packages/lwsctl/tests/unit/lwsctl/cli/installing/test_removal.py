"""Tests which objects an uninstallation removes, and in which order."""

from kuberuntime.objects import meta
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.install.objects import build_all
from leaderworkerset.kinds.managedkinds import MANAGED
from lwsctl.cli.commands.uninstall import installation_objects, is_dependent


def test_every_installable_object_is_removed_once() -> None:
    """The objects include the issuer, the certificates and the monitor of the overlays (R-OP-47)."""
    found = installation_objects("lws-system")
    assert len(found) == len(set(found))
    for chosen in (
        InstallSettings(),
        InstallSettings(certificates="cert-manager"),
        InstallSettings(certificates="cert-manager", prometheus="monitoring"),
    ):
        objects = {(kind, meta.key(obj)) for kind, obj in build_all(MANAGED, chosen)}
        left = {kind.kind for kind, _ in objects - set(found)}
        assert left == {"Namespace", "CustomResourceDefinition"}


def test_webhooks_are_removed_first() -> None:
    """After the manager is deleted, remaining webhooks would reject user writes (R-OP-31)."""
    kinds = [kind.kind for kind, _ in reversed(installation_objects("lws-system"))]
    assert kinds[:3] == ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "Deployment"]


def test_dependents_have_owners_of_the_managed_kinds() -> None:
    owner = {"kind": "LeaderWorkerSet", "name": "web", "controller": True}
    assert is_dependent({"metadata": {"ownerReferences": [owner]}})
    assert not is_dependent({"metadata": {"ownerReferences": [owner | {"kind": "Other"}]}})
    assert not is_dependent({"metadata": {}})
