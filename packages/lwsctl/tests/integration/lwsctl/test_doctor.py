"""Tests `lws doctor` on both clusters.

It finds no error on a healthy one, and reports a webhook that is not trusted.
"""

import base64
from datetime import UTC, datetime

from tests.integration.clusters.space import LiveScenario
from tests.integration.lwsctl.test_commands import session_of

from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import MUTATING_WEBHOOK_CONFIGURATIONS
from leaderworkerset.webhooks import certificates
from leaderworkerset.webhooks.configurations import MUTATING_NAME
from lwsctl.cli.doctor import installationchecks
from lwsctl.cli.doctor.checkinputs import observe
from lwsctl.cli.doctor.findings import CheckResult, Level

KEY = ObjectKey("", MUTATING_NAME)
NO_DEPLOYMENT = {"LWS-D502", "LWS-D512"}
"""The test process runs the manager, so there is no Deployment, and the manager does not require a lease."""


async def problems(space: LiveScenario) -> dict[str, CheckResult]:
    """Return the findings that are errors or warnings."""
    facts = await observe(session_of(space))
    found = installationchecks.findings(facts, datetime.now(UTC))
    return {one.code: one for one in found if one.level in {Level.ERROR, Level.WARNING}}


async def test_doctor_names_an_untrusted_webhook_only(space: LiveScenario) -> None:
    assert not (await problems(space)).keys() - NO_DEPLOYMENT
    before = await space.client.get(MUTATING_WEBHOOK_CONFIGURATIONS, KEY)
    kept = [hook["clientConfig"]["caBundle"] for hook in before["webhooks"]]
    other = base64.b64encode(certificates.create_authority(datetime.now(UTC)).certificate).decode()
    try:
        await bundles(space, [other] * len(kept))
        found = await space.eventually(lambda: problems(space), lambda seen: "LWS-D305" in seen)
    finally:
        await bundles(space, kept)
    assert "failed calling webhook" in found["LWS-D305"].text
    assert "does not match the CA of the webhook" in found["LWS-D305"].fix
    await space.eventually(lambda: problems(space), lambda seen: "LWS-D305" not in seen)


async def bundles(space: LiveScenario, values: list[str]) -> None:
    """Write the CA bundles of the webhooks."""
    patch = [
        {"op": "replace", "path": f"/webhooks/{at}/clientConfig/caBundle", "value": value}
        for at, value in enumerate(values)
    ]
    await space.client.patch(MUTATING_WEBHOOK_CONFIGURATIONS, KEY, patch, kind="json")
