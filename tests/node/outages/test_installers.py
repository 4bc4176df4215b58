"""Tests that installation methods take over from each other while groups run, including `lws install`."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from testkit.repository import ROOT
from tests.controlplane.process import StartError
from tests.kubernetes.programs.build import HELM
from tests.node import certmanager, product
from tests.node.images import PRODUCT
from tests.node.objects import leaderworkerset, pod
from tests.node.place import Place, restarts
from tests.node.product import NAMESPACE

from leaderworkerset.api.metadata import MANAGER
from leaderworkerset.install.certmanager import METRICS, SERVING, SERVING_SECRET

pytestmark = pytest.mark.long

NAME, TAG = PRODUCT.split(":")
IMAGES = [{"name": "localhost/leaderworkerset", "newName": NAME, "newTag": TAG}]
IN = f"--namespace={NAMESPACE}"
APPLY = ("apply", "--server-side", "--force-conflicts")
OPERATOR = "deployment/openshift-lws-operator"


@pytest.fixture
def stays(place: Place) -> Iterator[Place]:
    """Run groups while another installation takes over, and let `lws install` take over from it afterwards."""
    product.restore(place.cluster)
    place.ready(leaderworkerset("stays", pod(), replicas=2), 4)
    yield place
    product.restore(place.cluster)


def test_other_installers_leave_nothing_for_the_next_test(place: Place) -> None:
    """The Helm release and the operator would revert or reject the next installation."""
    run = place.cluster.kubectl
    run("create", "secret", "generic", "sh.helm.release.v1.lws.v1", IN)
    run("label", "secret", "sh.helm.release.v1.lws.v1", IN, "owner=helm", "name=lws")
    run("create", "deployment", "openshift-lws-operator", IN, f"--image={PRODUCT}", "--replicas=0")
    run("label", OPERATOR, IN, "app.kubernetes.io/name=lws-operator")
    product.restore(place.cluster)
    assert not run("get", "secret,deployment", IN, "--selector=owner=helm", "--output=name")
    assert run("get", "deployment", IN, "--output=name") == f"deployment.apps/{MANAGER}\n"


def assert_managed(place: Place, before: dict[str, str]) -> None:
    """Assert that the managers of this installation work, and that no existing pod was changed."""
    product.await_managers(place.cluster)
    place.until(lambda: accepts_sets(place), "webhooks that are reached")
    place.ready(leaderworkerset("after", pod()), 2)
    place.kubectl("label", "lws", "stays", "seen=yes")
    place.await_ready("stays", 2, 4)
    assert place.uids("stays") == before
    assert [restarts(one) for one in place.pods("stays")] == [0] * 4


def accepts_sets(place: Place) -> bool:
    """Return whether the API server reaches the webhooks. Nodes detect new manager pods with a delay."""
    try:
        place.kubectl("create", "--dry-run=server", "--filename=-", text=json.dumps(leaderworkerset("try", pod())))
    except StartError:
        return False
    return True


def overlay(directory: Path, base: str, **fields: Any) -> str:
    """Write an overlay of a directory that sets the image. kustomize accepts only relative paths."""
    (directory / "leaderworkerset").symlink_to(ROOT)
    content = {"resources": [f"leaderworkerset/{base}"], "images": IMAGES, **fields}
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(content))
    return str(directory)


def commands(page: str, heading: str) -> list[str]:
    """Return the command blocks after a heading on a page."""
    text = (ROOT / "docs" / "how-to" / page).read_text().replace("deploy/", f"{ROOT}/deploy/").replace("\\\n", "")
    section = text.partition(heading)[2].partition("\n## ")[0]
    return re.findall(r"^```bash\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def shell(place: Place, text: str) -> None:
    """Run the commands on a page."""
    words = [*place.cluster.inside, "sh", "-ec", text]
    done = subprocess.run(words, env=place.cluster.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_kustomize_takes_over(stays: Place, tmp_path: Path) -> None:
    before = stays.uids("stays")
    stays.cluster.kubectl(*APPLY, "--kustomize", overlay(tmp_path, "deploy/kustomize"))
    assert_managed(stays, before)


def test_cert_manager_issues_the_certificates(stays: Place, tmp_path: Path) -> None:
    before, run = stays.uids("stays"), stays.cluster.kubectl
    with certmanager.running(stays.cluster):
        run(*APPLY, "--kustomize", overlay(tmp_path, "deploy/kustomize/overlays/cert-manager"))
        names = [f"certificate/{name}" for name in (SERVING, METRICS)]
        run("wait", *names, IN, "--for=condition=Ready", "--timeout=3m")
        assert_managed(stays, before)
        authority = run("get", "secret", SERVING_SECRET, IN, "--output=jsonpath={.data.ca\\.crt}")
        kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
        found = json.loads(run("get", kinds, "--selector=app.kubernetes.io/name=lws", "--output=json"))["items"]
        assert {webhook["clientConfig"]["caBundle"] for one in found for webhook in one["webhooks"]} == {authority}
        product.restore(stays.cluster)


@pytest.mark.skipif(HELM.find() is None, reason=HELM.missing)
def test_helm_release_takes_over(stays: Place) -> None:
    before, helm = stays.uids("stays"), str(HELM.find())
    chosen = f"--set=image.manager.repository={NAME},image.manager.tag={TAG}"
    shell(stays, f"{helm} install lws {ROOT}/deploy/helm/lws {IN} --take-ownership {chosen} --wait --timeout=5m")
    assert_managed(stays, before)
    shell(stays, f"{helm} test lws {IN} --timeout=3m")
    shell(stays, f"kubectl delete secret {IN} --selector owner=helm,name=lws")


def test_operator_takes_over(stays: Place, tmp_path: Path) -> None:
    """The operator runs in the namespace of the installation, and the manager issues its certificates."""
    before, run = stays.uids("stays"), stays.cluster.kubectl
    containers = "spec.template.spec.containers"
    variable = f"{containers}.0.env.[name=RELATED_IMAGE_OPERAND_IMAGE].value"
    target = {"select": {"kind": "Deployment"}, "fieldPaths": [variable]}
    source = {"kind": "Deployment", "fieldPath": f"{containers}.0.image"}
    replaced = [{"source": source, "targets": [target]}]
    folder = overlay(tmp_path, "deploy/operator", namespace=NAMESPACE, replacements=replaced)
    take, leave, remove = commands("change-the-installer.md", "## Change the installer")
    run(*APPLY, "--kustomize", folder)
    run("wait", "--for=condition=established", "crd/leaderworkersetoperators.operator.openshift.io")
    run("rollout", "status", OPERATOR, IN, "--timeout=3m")
    shell(stays, next(line for line in take.splitlines() if "lwsop" in line or "14_" in line).partition("#")[0])
    run("wait", "--for=condition=Available", "lwsop/cluster", "--timeout=5m")
    assert_managed(stays, before)
    shell(stays, next(line for line in leave.splitlines() if "lwsop" in line))
    product.install(stays.cluster)
    shell(stays, remove)
    stays.ready(leaderworkerset("later", pod()), 2)
    assert stays.uids("stays") == before
