"""Tests managers that are killed, upgraded and rolled back while groups are running."""

import base64
import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import predecessor
from tests.node import daemons, images, product, programs
from tests.node.images import PREVIOUS, PRODUCT
from tests.node.objects import leaderworkerset, pod
from tests.node.place import Place, restarts
from tests.node.product import NAMESPACE

from leaderworkerset.api.metadata import MANAGER

OTHER = "localhost/leaderworkerset:other"
RELEASE = "93e55ccb5ca82187d3706f076dba800c371e1c34"
"""The commit of the latest version in CHANGELOG.md."""

SECRET = "lws-webhook-server-cert"
SHOW = "import ssl, sys; print(ssl.get_server_certificate((sys.argv[1], 9443), timeout=5), end='')"
LEASE = "b8b2488c.x-k8s.io"


def holder(place: Place) -> str:
    """Return the pod of the leading manager."""
    lease = place.cluster.kubectl("get", "lease", LEASE, f"--namespace={NAMESPACE}", "--output=json")
    return str(json.loads(lease)["spec"]["holderIdentity"]).partition("_")[0]


def test_failure_is_repaired_after_a_killed_leader(place: Place) -> None:
    place.ready(leaderworkerset("led", pod(), replicas=2), 4)
    before, leading = place.uids("led"), holder(place)
    place.cluster.kubectl("delete", "pod", leading, f"--namespace={NAMESPACE}", "--force", "--grace-period=0")
    place.terminate("led-0-1")
    place.until(lambda: place.uids("led").get("led-0", before["led-0"]) != before["led-0"], "another group 0")
    place.await_ready("led", 2, 4)
    assert holder(place) != leading
    after = place.uids("led")
    assert (after["led-1"], after["led-1-1"]) == (before["led-1"], before["led-1-1"])


def test_a_failure_is_mended_once_a_manager_is_back(place: Place) -> None:
    """The kubelet restarts the container in the meantime, and a LeaderWorkerSet can be deleted."""
    place.ready(leaderworkerset("waits", pod()), 2)
    place.ready(leaderworkerset("removed", pod()), 2)
    before = place.uids("waits")
    scale = ("scale", f"deployment/{MANAGER}", f"--namespace={NAMESPACE}")
    place.cluster.kubectl(*scale, "--replicas=0")
    try:
        managers = (
            "get",
            "pods",
            "--selector=control-plane=controller-manager",
            f"--namespace={NAMESPACE}",
            "--output=name",
        )
        place.until(lambda: not place.cluster.kubectl(*managers), "no manager")
        place.terminate("waits-0-1")
        place.until(lambda: [restarts(one) for one in place.pods("waits")] == [0, 1], "a restart of rank 1")
        assert place.uids("waits") == before
        place.kubectl("delete", "lws", "removed", "--cascade=foreground", "--timeout=120s")
    finally:
        place.cluster.kubectl(*scale, "--replicas=2")
        product.await_managers(place.cluster)
    place.until(lambda: set(before.values()).isdisjoint(place.uids("waits").values()), "another group")
    place.await_ready("waits", 1, 2)


@pytest.mark.long
def test_upgrade_and_rollback_touch_no_pod(place: Place) -> None:
    place.ready(leaderworkerset("stays", pod(), replicas=2), 4)
    before = place.uids("stays")
    for machine in place.cluster.machines:
        ctr = (str(place.cluster.node_assets / "ctr"), "--namespace=k8s.io")
        machine.run(*ctr, "images", "tag", "--force", PRODUCT, OTHER)
    for image in (OTHER, PRODUCT):
        product.install(place.cluster, image)
        images = "jsonpath={.items[*].spec.containers[0].image}"
        running = place.cluster.kubectl("get", "pods", f"--namespace={NAMESPACE}", f"--output={images}").split()
        assert image in running
        place.kubectl("annotate", "lws", "stays", f"seen={image.rpartition(':')[2]}", "--overwrite")
        place.await_ready("stays", 2, 4)
    assert place.uids("stays") == before
    assert [restarts(one) for one in place.pods("stays")] == [0] * 4


@pytest.fixture
def installed(place: Place) -> Iterator[None]:
    """Restore this version afterwards."""
    yield
    product.install(place.cluster)


@pytest.mark.long
@pytest.mark.usefixtures("installed")
def test_upgrade_from_the_last_release_touches_no_pod(place: Place, tmp_path: Path) -> None:
    """Each version is installed by its own `lws` command."""
    predecessor.unpack(RELEASE, tmp_path)
    archive, version = images.make_previous(tmp_path, programs.say), predecessor.environment(tmp_path / "src")
    for machine in place.cluster.machines:
        daemons.load(machine, place.cluster.node_assets, [archive])
    product.install(place.cluster, PREVIOUS, version, product.PLAIN, "leaderworkerset.cli")
    place.ready(leaderworkerset("stays", pod(), replicas=2), 4)
    before = place.uids("stays")
    product.install(place.cluster)
    assert_untouched(place, before, "upgraded")
    product.install(place.cluster, PREVIOUS, version, product.PLAIN, "leaderworkerset.cli")
    assert_untouched(place, before, "rolled-back")


def assert_untouched(place: Place, before: dict[str, str], name: str) -> None:
    """Assert that the managers work, and that no existing pod was changed."""
    product.await_managers(place.cluster)
    place.ready(leaderworkerset(name, pod()), 2)
    place.kubectl("annotate", "lws", "stays", f"seen={name}", "--overwrite")
    place.await_ready("stays", 2, 4)
    assert place.uids("stays") == before
    assert [restarts(one) for one in place.pods("stays")] == [0] * 4


def test_certificate_is_renewed_without_a_rejected_request(place: Place) -> None:
    """The command on the page runs during continuous writes."""
    place.ready(leaderworkerset("written", pod()), 2)
    old = certificate(place)
    removed = json.dumps({"data": {"tls.crt": None, "tls.key": None}})
    place.cluster.kubectl("patch", "secret", SECRET, f"--namespace={NAMESPACE}", "--type=merge", f"--patch={removed}")
    written = 0
    while written < 10 or certificate(place) in ("", old) or served(place) != {certificate(place)}:
        written += 1
        place.kubectl("annotate", "lws", "written", f"written={written}", "--overwrite")
        assert written < 600, "the managers still serve another certificate"


def certificate(place: Place) -> str:
    """Return the serving certificate from the Secret, or an empty string if there is none."""
    path = "jsonpath={.data.tls\\.crt}"
    text = place.cluster.kubectl("get", "secret", SECRET, f"--namespace={NAMESPACE}", f"--output={path}")
    return first_of(base64.b64decode(text).decode())


def served(place: Place) -> set[str]:
    """Return the certificates that the managers serve."""
    path = "jsonpath={.items[*].status.podIP}"
    managers = ("--selector=control-plane=controller-manager", f"--namespace={NAMESPACE}", f"--output={path}")
    found = set()
    for address in place.cluster.kubectl("get", "pods", *managers).split():
        with place.running(["python3", "-c", SHOW, address]) as process:
            found.add(first_of(process.communicate()[0]))
    return found


def first_of(text: str) -> str:
    """Return the first certificate in a Python-formatted string, or an empty string if there is none."""
    end = "-----END CERTIFICATE-----"
    return ssl.DER_cert_to_PEM_cert(ssl.PEM_cert_to_DER_cert(text.partition(end)[0] + end)) if end in text else ""


def test_set_can_be_created_directly_after_the_installation(place: Place) -> None:
    product.install(place.cluster)
    place.apply(leaderworkerset("first", pod()))
    place.await_ready("first", 1, 2)
