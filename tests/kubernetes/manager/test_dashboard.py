"""Tests the shared dashboard with the permissions of its account.

Users see what they may read, and act as themselves.
"""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
import pytest
from deploy.packages import dashboarddeployment, userroles
from testkit.clusters.kubernetes import KubernetesCluster
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.installation import token_of
from tests.kubernetes.manager.replicas import until
from tests.kubernetes.manager.world import InstalledCluster

from kuberuntime.client.client import Client
from kuberuntime.errors import ForbiddenError
from kuberuntime.objects import meta, resources
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, SERVICE_ACCOUNTS, Resource
from leaderworkerset.api import metadata
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.install.installsettings import NAMESPACE
from leaderworkerset.kinds.managedkinds import MANAGED
from lwsctl.dashboard.requestchecks import ACTION_HEADER

pytestmark = pytest.mark.slow

RULES: Final = Resource(
    "authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", namespaced=False
)
READING: Final = frozenset({"get", "list", "watch"})
OF_EVERYBODY: Final = {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}
"""The access review kinds that each account may create."""

SET: Final = ObjectKey("shown", "web")


async def prepare(world: InstalledCluster) -> None:
    """Create a LeaderWorkerSet, the dashboard account, and accounts with the `view` and `edit` roles."""
    await world.start("a")
    await (await CheckedNamespace(world.client, SET.namespace).open()).create_groups(SET.name, replicas=1, size=2)
    installed = dashboarddeployment.build_dashboard(NAMESPACE, "image:1")
    for resource, obj in (*userroles.build(MANAGED), *installed):
        await world.client.apply(resource, obj, manager="tests")
    for role in ("view", "edit"):
        subject = {"kind": SERVICE_ACCOUNTS.kind, "name": f"may-{role}", "namespace": NAMESPACE}
        reference = {"apiGroup": CLUSTER_ROLES.group, "kind": CLUSTER_ROLES.kind, "name": role}
        binding = metadata.build(CLUSTER_ROLE_BINDINGS, f"may-{role}", subjects=[subject], roleRef=reference)
        account = metadata.build(SERVICE_ACCOUNTS, f"may-{role}", NAMESPACE)
        for resource, obj in ((SERVICE_ACCOUNTS, account), (CLUSTER_ROLE_BINDINGS, binding)):
            await world.client.apply(resource, obj, manager="tests")

        async def is_aggregated(role: str = role) -> bool:
            return LEADERWORKERSETS.plural in str(await world.client.get(CLUSTER_ROLES, ObjectKey("", role)))

        await until(is_aggregated)


async def write_kubeconfig(world: InstalledCluster) -> Path:
    """Write a kubeconfig with a token of the dashboard account. Return its path."""
    config = json.loads(world.plane.kubeconfig.read_text())
    config["users"] = [{"name": "admin", "user": {"token": await token_of(world.client, dashboarddeployment.NAME)}}]
    kubeconfig = world.directory / "dashboard.kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    return kubeconfig


@asynccontextmanager
async def serving(world: InstalledCluster) -> AsyncIterator[str]:
    """Run the dashboard on a free port with the command line from its Deployment. Yield its address."""
    kubeconfig = await write_kubeconfig(world)
    own = [*dashboarddeployment.ARGUMENTS, "--listen=127.0.0.1", "--port=0"]
    words = ["-m", "lwsctl.cli", f"--kubeconfig={kubeconfig}", "dashboard", *own]
    process = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            line = (await process.stdout.readline()).decode()
        yield "http://" + line.partition("listening on ")[2].partition(". ")[0]
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def login(address: str, token: str, status: int = 200) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    """Log in. Yield the session and the next page."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(address, cookie_jar=jar, headers={"Origin": address}) as session:
        async with session.post("/login", data={"token": token}) as response:
            page = await response.text()
            assert response.status == status, page
        yield session, page


async def act(session: aiohttp.ClientSession, groups: int) -> tuple[JSONObject, JSONObject]:
    """Scale the LeaderWorkerSet as a browser does. Return the results of the dry run and of the action."""
    async with session.get(f"/sets/{SET.namespace}/{SET.name}") as response:
        page = await response.text()
        assert response.status == 200
        assert "0 of 1 group ready" in page or "1 of 1 group ready" in page
    (secret,) = re.findall('data-action="([^"]+)"', page)
    asked = {"verb": "scale", "namespace": SET.namespace, "name": SET.name, "groups": str(groups)}
    answers = []
    for confirmed in (False, True):
        sent = asked | {"confirmed": confirmed}
        async with session.post("/act", json=sent, headers={ACTION_HEADER: secret}) as response:
            answers.append(await response.json())
    return answers[0], answers[1]


async def replicas(world: InstalledCluster) -> int:
    """Return the desired number of groups."""
    return int(meta.spec(await world.client.get(LEADERWORKERSETS, SET))["replicas"])


async def test_users_of_the_dashboard_act_with_their_own_rights(world: InstalledCluster) -> None:
    await prepare(world)
    tokens = {role: await token_of(world.client, f"may-{role}") for role in ("view", "edit")}
    async with serving(world) as address:
        async with login(address, await token_of(world.client, "default"), status=403) as (_, page):
            assert "system:serviceaccount:lws-system:default is not permitted to list leaderworkersets" in page
        async with login(address, tokens["view"]) as (session, page):
            assert 'id="s/shown/web"' in page
            trial, done = await act(session, 3)
            assert not trial["done"]
            assert not done["done"]
            for answer in (trial, done):
                assert 'User "system:serviceaccount:lws-system:may-view" cannot patch resource' in answer["text"]
            assert await replicas(world) == 1
        async with login(address, tokens["edit"]) as (session, _):
            trial, done = await act(session, 2)
            assert (trial["done"], done["done"]) == (True, True), (trial, done)
            assert await replicas(world) == 2


async def test_the_account_of_the_dashboard_can_only_read(world: InstalledCluster) -> None:
    """The API server lists the permissions of the account, also in the manager's namespace.

    No other verb is allowed.
    """
    for resource, obj in dashboarddeployment.build_dashboard(NAMESPACE, "image:1"):
        await world.client.apply(resource, obj, manager="tests")
    client = Client(KubernetesCluster(await write_kubeconfig(world)).transport("dashboard"))
    for namespace in ("default", NAMESPACE):
        head = {"apiVersion": RULES.api_version, "kind": RULES.kind, "spec": {"namespace": namespace}}
        rules = meta.status(await client.create(RULES, head))["resourceRules"]
        written = {kind for rule in rules for kind in rule["resources"] if not READING.issuperset(rule["verbs"])}
        assert written == OF_EVERYBODY
        read = {kind for rule in rules for kind in rule["resources"]}
        assert {"leaderworkersets", "pods/log"} <= read
        assert not read & {"secrets", "*"}
    for kind in dashboarddeployment.FOLLOWED[:1] + dashboarddeployment.FOLLOWED[2:]:
        assert (await client.list(kind)).items is not None
    with pytest.raises(ForbiddenError):
        await client.list(resources.SECRETS)
    await client.close()
