"""Lists the accepted differences with their reasons. Differences only in messages are in `refusedwords.py`.

`docs/reference/conformance.md` is made from them. A whole run fails if one of them no longer occurs (`witness.py`).
"""

from collections.abc import Sequence

from tests.conformance import refusedwords
from tests.conformance.difference import Difference
from tests.conformance.refusal import RefusedError

from kuberuntime.objects.meta import JSON, JSONObject


def without_scale(entries: list[JSONObject]) -> JSON:
    """Return the entries of `managedFields` without those of the `scale` subresource, in any order."""
    return sorted(str(sorted(entry.items())) for entry in entries if entry.get("subresource") != "scale")


TABLE: tuple[RefusedError, ...] = (
    RefusedError(
        "`managedFields` of pods, nodes, leases, events and endpoint slices begin with the first server-side apply",
        "programs write these objects all the time; entries would double their size",
        request=".*/(pods|nodes|leases|events|endpointslices|endpoints)\\b.*",
        path=".*managedFields",
        embedded="<absent>",
    ),
    RefusedError(
        "a Service without a clusterIP is not given an address of its own",
        "nothing on this machine would answer at a virtual address; its name resolves to its pods",
        path=r".*(\.clusterIP|\.clusterIPs(\[0\])?|\.cells\[2\])",
        embedded="<absent>|<none>",
        real=r"(\[')?10\.0\..*",
    ),
    RefusedError(
        "what a Service is given (clusterIP, ipFamilies) is owned by whoever made it",
        "kube-apiserver gives it after the fields were counted; of no effect on those who apply",
        path=r".*\.f:spec\.f:(clusterIPs?|ipFamilies|ipFamilyPolicy)",
        embedded="{}",
        real="<absent>",
    ),
    RefusedError(
        "claims carry no finalizer `kubernetes.io/pvc-protection`",
        "a claim's directory is removed with the claim; there is no controller that would take the finalizer off",
        path=r".*\.finalizers",
        embedded="<absent>",
        real=r"\['kubernetes.io/pvc-protection'\]",
    ),
    RefusedError(
        "a new Node is not tainted `node.kubernetes.io/not-ready`",
        "the nodes are made by the cluster itself, and ready when they are made",
        path=r".*\.taints",
        real=".*node.kubernetes.io/not-ready.*",
    ),
    RefusedError(
        "columns of tables are described in fewer words",
        "kubectl does not show them",
        path=r".*\.columnDefinitions\[\d+\]\.description",
    ),
    RefusedError(
        "rows of ended pods in a table carry no condition `Completed`",
        "kubectl ignores it since 1.11",
        path=r"\.rows\[\d+\]\.conditions",
        embedded="<absent>",
    ),
    RefusedError(
        "a strategic merge patch with an invalid directive, or an apply with a value of the wrong type, is refused with 4xx",
        "kube-apiserver answers 500, which says that it itself had failed",
        request="PATCH .*",
        path="answer",
        embedded=r"\((400|422), .*",
        real=r"\(500, .*",
    ),
    RefusedError(
        "a patch that names another UID is refused with 409",
        "kube-apiserver answers 422 for most kinds and 409 for others; clients treat 409 as what it is",
        request="PATCH .*",
        path="answer",
        embedded=r"\(409, .*UID in precondition.*",
        real=r"\(422, .*metadata.uid.*",
    ),
    RefusedError(
        "an entry of `managedFields` for the subresource `scale` carries its time and stays when the status is written",
        "kube-apiserver writes it without a time, and loses it with the next write of the status",
        request="GET .*/(leaderworkersets|statefulsets)/.*",
        path=r"\.metadata\.managedFields",
        embedded=r".*'subresource': 'scale'.*",
        rest=without_scale,
    ),
    RefusedError(
        "the maker of a namespace owns its `spec.finalizers`, the maker of a StatefulSet no `maxUnavailable`",
        "kube-apiserver adds and removes these behind the count of fields; of no effect on those who apply",
        path=r".*\.f:spec(\.f:updateStrategy\.f:rollingUpdate\.f:maxUnavailable)?",
        embedded=r"<absent>|\{'f:finalizers': \{\}\}",
    ),
    RefusedError(
        "an item without its key is refused when it is applied, not when the result is checked",
        "the code is 400 instead of 422",
        request="PATCH .*",
        path="answer",
        embedded=r".*an element that omits key field.*",
    ),
    RefusedError(
        "a watch from a version that is still to come is refused with 504, as a list is",
        "kube-apiserver waits for it; only a client that changed its server requests it",
        request="WATCH .*",
        path=r"answer|\[0\].*",
    ),
    RefusedError(
        "a namespace that is being deleted carries `deletionGracePeriodSeconds: 0`, a finalized namespace an empty list",
        "as all other objects do",
        request=".*/namespaces/.*",
        path=r"\.metadata\.deletionGracePeriodSeconds|\.spec\.finalizers",
        embedded=r"0|\[\]",
        real="<absent>",
    ),
    RefusedError(
        "the names of a definition are accepted when it is made",
        "there is no controller that would do so a moment later",
        request=".*/customresourcedefinitions.*",
        path=r"\.status\.(acceptedNames|conditions)",
    ),
    RefusedError(
        "a body of `null` is not an object",
        "kube-apiserver takes it for an empty one",
        path="answer",
        embedded=".*the body is not an object.*",
    ),
    RefusedError(
        "discovery of custom resources lists the verbs in another order, and no `storageVersionHash`",
        "order has no meaning, and the hash none outside of an upgrade of the storage",
        request="GET /apis/.*",
        path=r"\.resources\[\d+\]\.(verbs.*|storageVersionHash)",
    ),
    RefusedError(
        "a pod may name a service account or a runtime class that is not there",
        "pods get no token here, and run as processes; neither is read",
        request="POST .*/pods",
        path="answer",
        real=r".*(error looking up service account|pod rejected: RuntimeClass).*",
    ),
    RefusedError(
        "privileged containers are accepted, also where something else is wrong with them",
        "kube-apiserver accepts them by its flag --allow-privileged, which every installer sets",
        request="POST .*/pods",
        path=r"answer|\.details\.causes",
        embedded=r"\(201, .*|.*cannot set `allowPrivilegeEscalation` to false and `privileged` to true.*",
        real=r".*disallowed by cluster policy.*",
    ),
    RefusedError(
        "a preStop hook may sleep longer than the grace period, and a volume's size limit may be negative",
        "the hook is cut off by the grace period, and size limits are not enforced",
        request="POST .*/pods",
        path="answer",
        embedded=r"\(201, .*",
        real=r".*(must be non-negative and less than terminationGracePeriodSeconds|SizeLimit field must be).*",
    ),
    RefusedError(
        "an empty source of a projected volume is refused",
        "kube-apiserver accepts it; it stands for a forgotten line",
        request="POST .*/pods",
        path="answer",
        embedded=r".*Projected volume source is required.*",
    ),
    RefusedError(
        "a binding without a target, or to anything but a node, is refused with 400",
        "kube-apiserver answers 500, which says that it itself had failed",
        request="POST .*/binding.*",
        path="answer",
        embedded=r"\(400, .*",
        real=r"\(500, .*",
    ),
    RefusedError(
        "a resourceVersion that is not a number is refused with 400 by a watch, with 409 by a scale",
        "kube-apiserver answers 500, which says that it itself had failed",
        request=".*('resourceVersion': 'odd'|\"resourceVersion\": \"odd\").*",
        path="answer",
        embedded=r"\((400|409), .*",
        real=r"\(500, .*",
    ),
    RefusedError(
        "a field selector without a field is refused with 400",
        "kube-apiserver treats it as a selector of everything",
        request=".*'fieldSelector': '='.*",
        path="answer",
        embedded=r"\(400, .*",
        real=r"\(200, .*",
    ),
    RefusedError(
        "a binding or an eviction without a name is of the pod in the path",
        "kube-apiserver wants the name again",
        request=r'POST .*/(binding|eviction).*"metadata": \{\}.*',
        path="answer",
        embedded=r"\(201, .*",
        real=r"\(400, .*",
    ),
    RefusedError(
        "a body that is not UTF-8 is refused with 400",
        "kube-apiserver stores another text than was sent",
        request="POST .*\ufffd.*",
        path="answer",
        embedded=r"\(400, .*",
    ),
    RefusedError(
        "a directive `$deleteFromPrimitiveList` that is not a list is refused with 400",
        "kube-apiserver ignores it",
        request="PATCH .*deleteFromPrimitiveList.*",
        path="answer",
        embedded=r"\(400, .*",
        real=r"\(200, .*",
    ),
    RefusedError(
        "a quantity of more than 99 zeros is refused",
        "kube-apiserver stores it as the largest there is",
        request=".*1e400.*",
        path="answer",
        embedded=r"\(400, .*",
        real=r"\(201, .*",
    ),
    RefusedError(
        "an autoscaler of autoscaling/v1 has metrics that v1 has no field for in its annotations as v2 writes them",
        "they are there so that nothing is lost when it is written back; the older form is one of autoscaling/v1 alone",
        request="GET .*/autoscaling/v1/.*",
        path=r"\.metadata\.annotations\.autoscaling\.alpha\.kubernetes\.io/metrics",
    ),
    RefusedError(
        "`managedFields` keep a field of autoscaling/v1 that a write of autoscaling/v2 has changed",
        "owners are not converted from one version of a kind to another; autoscalers alone are served in two",
        request="PATCH .*/autoscaling/v2/.*",
        path=r"\.metadata\.managedFields.*\.f:targetCPUUtilizationPercentage",
        embedded="{}",
        real="<absent>",
    ),
    *refusedwords.TABLE,
)


def covering(found: Difference) -> Sequence[RefusedError]:
    """Return the rows of the table that accept a difference."""
    return [one for one in TABLE if one.covers(found)]
