"""Tests pods with host permissions. A restricted cluster rejects the pods until their account is permitted.

A ValidatingAdmissionPolicy stands for OpenShift's SecurityContextConstraints.
"""

from typing import Final

from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import pod_names
from tests.integration.lwsctl.explanations import named, of_kubernetes, warned

from kuberuntime.errors import ForbiddenError
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, Resource

ADMISSION: Final = "admissionregistration.k8s.io"
POLICIES: Final = Resource(
    ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
BINDINGS: Final = Resource(
    ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False
)
CONSTRAINT: Final = "hostaccess"
MESSAGE: Final = "unable to validate against any security context constraint: host IPC is not allowed to be used"
ALLOWED: Final = (
    "!object.spec.?hostIPC.orValue(false) || authorizer.serviceAccount(object.metadata.namespace,"
    " object.spec.serviceAccountName).group('security.openshift.io').resource('securitycontextconstraints')"
    f".namespace(object.metadata.namespace).name('{CONSTRAINT}').check('use').allowed()"
)


def restriction(namespace: str) -> list[tuple[Resource, JSONObject]]:
    """Return the policy, and its binding to one namespace."""
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    policy = {
        "matchConstraints": {"resourceRules": [pods]},
        "validations": [{"expression": ALLOWED, "message": MESSAGE, "reason": "Forbidden"}],
    }
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    binding = {"policyName": namespace, "validationActions": ["Deny"], "matchResources": here}
    return [
        (kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": namespace}, "spec": spec})
        for kind, spec in ((POLICIES, policy), (BINDINGS, binding))
    ]


def grant(account: str, namespace: str) -> list[tuple[Resource, JSONObject]]:
    """Return the role that allows an account to use the constraint."""
    rule = {
        "apiGroups": ["security.openshift.io"],
        "resources": ["securitycontextconstraints"],
        "resourceNames": [CONSTRAINT],
        "verbs": ["use"],
    }
    head = {"apiVersion": ROLES.api_version, "metadata": {"name": "host"}}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "host"}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    return [
        (ROLES, head | {"kind": "Role", "rules": [rule]}),
        (ROLE_BINDINGS, head | {"kind": "RoleBinding", "roleRef": reference, "subjects": [subject]}),
    ]


async def test_privileged_pods_wait_until_their_account_is_permitted(space: LiveScenario) -> None:
    """Rejected pods are reported in an event and in `lws explain`, and are created after the account is permitted.

    Rules R-OP-62, AT-000-6d.

    Rules R-OP-62, AT-000-6d.
    """
    of_kubernetes(space)
    await space.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "rdma"}}, SERVICE_ACCOUNTS)
    made = restriction(space.namespace)
    for kind, obj in made:
        await space.client.create(kind, obj)
    probe = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}} | pod_template(hostIPC=True)
    await space.eventually(lambda: is_refused(space, probe), bool)

    template = {"workerTemplate": pod_template(hostIPC=True, serviceAccountName="rdma")}
    await space.create(lws(replicas=2, size=2, template=template))
    await space.until(warned(MESSAGE))
    told = await named(space, "LWS-E010")  # on OpenShift, LWS-E024, because its admission denies the pod
    assert MESSAGE in told.sentence
    assert not space.state.pods

    for kind, obj in grant("rdma", space.namespace):
        await space.create(obj, kind)
    await space.settled()
    assert space.state.of("web").keys() == pod_names("web", 2, 2)
    for kind, _ in reversed(made):
        await space.client.delete(kind, ObjectKey("", space.namespace))


async def is_refused(space: LiveScenario, pod: JSONObject) -> bool:
    """Return whether the policy is active, because API servers apply policies with a delay."""
    try:
        await space.create(pod, PODS, dry_run=True)
    except ForbiddenError as error:
        return MESSAGE in str(error)
    return False
