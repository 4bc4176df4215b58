"""One installer takes over from another, for each pair that installs into one namespace, by the commands of the page."""

import base64
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.integration.clusters import objects
from tests.integration.install.conftest import Administrator
from tests.packages.build import HELM

from leaderworkerset.kinds.managed import MANAGED
from leaderworkerset.webhooks.configurations import MUTATING_NAME, VALIDATING_NAME

pytestmark = [pytest.mark.slow, pytest.mark.skipif(HELM.find() is None, reason=HELM.missing)]

ROOT = Path(__file__).parents[3]
IN = ("-n", "lws-system")
INSTALL, MANIFESTS, KUSTOMIZE, CHART = INSTALLERS = ("lws install", "manifests.yaml", "kustomize", "Helm")
TOUR = (
    *(INSTALL, MANIFESTS, INSTALL, KUSTOMIZE, INSTALL, CHART, MANIFESTS, KUSTOMIZE, MANIFESTS),
    *(CHART, KUSTOMIZE, CHART, INSTALL),
)
"""Every ordered pair once."""

BUNDLE = base64.b64encode(b"-----BEGIN CERTIFICATE-----\n").decode()
SECRET = ("secret/lws-webhook-server-cert", *IN)
WEBHOOKS = {
    f"mutatingwebhookconfiguration/{MUTATING_NAME}": 2,
    f"validatingwebhookconfiguration/{VALIDATING_NAME}": 2,
}


def page() -> tuple[dict[str, list[str]], list[str]]:
    """Return the command of each installer, and the one that comes after Helm."""
    section = (
        (ROOT / "docs/how-to/install.md").read_text().partition("## Change the installer")[2].partition("\n## ")[0]
    )
    first, forget = re.findall(r"^```bash\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    commands = dict(re.findall(r"^(.*?) +# ([^,\n]+)", first, re.MULTILINE))
    placed = {name: line.replace("deploy/", f"{ROOT}/deploy/").split() for line, name in commands.items()}
    return placed, forget.split()


def run(administrator: Administrator, words: list[str]) -> None:
    program, *rest = words
    {"lws": administrator.lws, "kubectl": administrator.kubectl, "helm": administrator.helm}[program](*rest)


def write_certificates(administrator: Administrator) -> None:
    """Write what a manager writes: its certificate's secret, and whom the API server trusts."""
    administrator.kubectl("patch", *SECRET, "-p", f'{{"data": {{"ca.crt": "{BUNDLE}"}}}}')
    for name, count in WEBHOOKS.items():
        operations = ",".join(
            f'{{"op": "add", "path": "/webhooks/{index}/clientConfig/caBundle", "value": "{BUNDLE}"}}'
            for index in range(count)
        )
        administrator.kubectl("patch", name, "--type=json", "-p", f"[{operations}]")


def kept(administrator: Administrator) -> dict[str, Any]:
    """Return what must outlive every change: identities, certificates, and where requests are sent."""
    found = {
        name: administrator.there(*name.split())
        for name in (
            "lws/web",
            *(f"crd/{kind.group_resource}" for kind in MANAGED.defined),
            "deployment/lws-controller-manager -n lws-system",
            "service/lws-webhook-service -n lws-system",
            *WEBHOOKS,
        )
    }
    services = found["service/lws-webhook-service -n lws-system"]["spec"]
    return {
        "identities": {name: obj["metadata"]["uid"] for name, obj in found.items()},
        "set": found["lws/web"]["spec"],
        "secret": administrator.there(*SECRET)["data"],
        "service": (services["selector"], services["ports"], services["clusterIP"]),
        "webhooks": {name: [hook["clientConfig"] for hook in found[name]["webhooks"]] for name in WEBHOOKS},
    }


def test_the_tour_has_every_pair() -> None:
    assert len(set(pairwise(TOUR))) == len(TOUR) - 1 == len(INSTALLERS) * (len(INSTALLERS) - 1)


def test_each_takes_over_from_each(fresh: Administrator) -> None:
    """R-OP-44, R-OP-50, R-OP-56: nothing is deleted, no certificate is lost, no request is sent elsewhere."""
    commands, forget = page()
    assert commands.keys() == set(INSTALLERS)
    run(fresh, commands[TOUR[0]])
    fresh.await_kind()
    fresh.kubectl("delete", *WEBHOOKS)  # nobody answers
    fresh.kubectl("create", "-f", "-", objects=[objects.lws("web", replicas=2)])
    run(fresh, commands[TOUR[0]])
    write_certificates(fresh)
    before = kept(fresh)
    for former, now in pairwise(TOUR):
        run(fresh, commands[now])
        if former == CHART:
            run(fresh, forget)
        assert kept(fresh) == before, (former, now)
    assert fresh.helm("list", *IN, "-q") == ""
