"""Managers that are killed, upgraded and rolled back, while groups run."""

import json

from tests.node import product
from tests.node.images import PRODUCT
from tests.node.objects import leaderworkerset, pod
from tests.node.place import Place, restarts
from tests.node.product import NAMESPACE

OTHER = "localhost/leaderworkerset:other"
LEASE = "b8b2488c.x-k8s.io"


def holder(place: Place) -> str:
    """Return the pod of the manager that leads."""
    lease = place.cluster.kubectl("get", "lease", LEASE, f"--namespace={NAMESPACE}", "--output=json")
    return str(json.loads(lease)["spec"]["holderIdentity"]).partition("_")[0]


def test_a_failure_is_mended_when_the_leading_manager_is_killed(place: Place) -> None:
    place.ready(leaderworkerset("led", pod(), replicas=2), 4)
    before, leading = place.uids("led"), holder(place)
    place.cluster.kubectl("delete", "pod", leading, f"--namespace={NAMESPACE}", "--force", "--grace-period=0")
    place.terminate("led-0-1")
    place.until(lambda: place.uids("led").get("led-0", before["led-0"]) != before["led-0"], "another group 0")
    place.await_ready("led", 2, 4)
    assert holder(place) != leading
    after = place.uids("led")
    assert (after["led-1"], after["led-1-1"]) == (before["led-1"], before["led-1-1"])


def test_an_upgrade_and_its_rollback_touch_no_pod(place: Place) -> None:
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


def test_a_set_can_be_made_right_after_the_installation(place: Place) -> None:
    product.install(place.cluster)
    place.apply(leaderworkerset("first", pod()))
    place.await_ready("first", 1, 2)
