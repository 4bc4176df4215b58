"""Lists accepted differences with their reasons. `refusedwords.py` lists differences between messages.

`docs/reference/conformance.md` is made from them. A whole run fails if one of them no longer occurs (`witness.py`).
"""

from collections.abc import Sequence

from tests.conformance import refusedwords
from tests.conformance.difference import Difference
from tests.conformance.refusal import RefusedError

from kuberuntime.objects.meta import JSON, JSONObject


def without_scale(entries: list[JSONObject]) -> JSON:
    """Return the `managedFields` entries of all subresources except `scale`, in any order."""
    return sorted(str(sorted(entry.items())) for entry in entries if entry.get("subresource") != "scale")


TABLE: tuple[RefusedError, ...] = (
    RefusedError(
        "`managedFields` of pods, nodes, leases, events and EndpointSlices start with the first server-side apply",
        "components write these objects often, and the entries would double their size",
        request=".*/(pods|nodes|leases|events|endpointslices|endpoints)\\b.*",
        path=".*managedFields",
        embedded="<absent>",
    ),
    RefusedError(
        "a Service without a clusterIP is not assigned an address",
        "a virtual address would not respond on this machine; the name of the Service resolves to its pods",
        path=r".*(\.clusterIP|\.clusterIPs(\[0\])?|\.cells\[2\])",
        embedded="<absent>|<none>",
        real=r"(\[')?10\.0\..*",
    ),
    RefusedError(
        "the creator of a Service owns the assigned fields (clusterIP, ipFamilies)",
        "kube-apiserver assigns them after it computes ownership; this does not affect clients that apply objects",
        path=r".*\.f:spec\.f:(clusterIPs?|ipFamilies|ipFamilyPolicy)",
        embedded="{}",
        real="<absent>",
    ),
    RefusedError(
        "claims do not have the finalizer `kubernetes.io/pvc-protection`",
        "the directory of a claim is removed with the claim, and there is no controller that removes the finalizer",
        path=r".*\.finalizers",
        embedded="<absent>",
        real=r"\['kubernetes.io/pvc-protection'\]",
    ),
    RefusedError(
        "a new Node does not have the taint `node.kubernetes.io/not-ready`",
        "the cluster creates its nodes, which are ready immediately",
        path=r".*\.taints",
        real=".*node.kubernetes.io/not-ready.*",
    ),
    RefusedError(
        "the descriptions of table columns are shorter",
        "kubectl does not show them",
        path=r".*\.columnDefinitions\[\d+\]\.description",
    ),
    RefusedError(
        "table rows of terminated pods do not have the condition `Completed`",
        "kubectl ignores it since 1.11",
        path=r"\.rows\[\d+\]\.conditions",
        embedded="<absent>",
    ),
    RefusedError(
        "a strategic merge patch with an invalid directive, or an apply with a value of an incorrect type, is rejected with 4xx",
        "kube-apiserver returns 500, which indicates a server error",
        request="PATCH .*",
        path="answer",
        embedded=r"\((400|422), .*",
        real=r"\(500, .*",
    ),
    RefusedError(
        "a patch with a different UID is rejected with 409",
        "kube-apiserver returns 422 for most kinds and 409 for others; clients handle 409 correctly",
        request="PATCH .*",
        path="answer",
        embedded=r"\(409, .*UID in precondition.*",
        real=r"\(422, .*metadata.uid.*",
    ),
    RefusedError(
        "an entry of `managedFields` for the subresource `scale` has a time, and is retained when the status is written",
        "kube-apiserver writes it without a time, and drops it with the next write of the status",
        request="GET .*/(leaderworkersets|statefulsets)/.*",
        path=r"\.metadata\.managedFields",
        embedded=r".*'subresource': 'scale'.*",
        rest=without_scale,
    ),
    RefusedError(
        "the creator of a namespace owns its `spec.finalizers`, and the creator of a StatefulSet does not own `maxUnavailable`",
        "kube-apiserver adds and removes these fields after it computes ownership; this does not affect clients that apply objects",
        path=r".*\.f:spec(\.f:updateStrategy\.f:rollingUpdate\.f:maxUnavailable)?",
        embedded=r"<absent>|\{'f:finalizers': \{\}\}",
    ),
    RefusedError(
        "an item without its key is rejected when it is applied, not when the result is validated",
        "the code is 400 instead of 422",
        request="PATCH .*",
        path="answer",
        embedded=r".*an element that omits key field.*",
    ),
    RefusedError(
        "a watch from a future resourceVersion is rejected with 504, like a list",
        "kube-apiserver waits for this version; only a client that has switched servers requests it",
        request="WATCH .*",
        path=r"answer|\[0\].*",
    ),
    RefusedError(
        "a namespace that is being deleted has `deletionGracePeriodSeconds: 0`, and a finalized namespace has an empty list",
        "all other objects have the same values",
        request=".*/namespaces/.*",
        path=r"\.metadata\.deletionGracePeriodSeconds|\.spec\.finalizers",
        embedded=r"0|\[\]",
        real="<absent>",
    ),
    RefusedError(
        "the names of a CRD are accepted when it is created",
        "no controller accepts them later",
        request=".*/customresourcedefinitions.*",
        path=r"\.status\.(acceptedNames|conditions)",
    ),
    RefusedError(
        "a body with `null` is not an object",
        "kube-apiserver treats it as an empty object",
        path="answer",
        embedded=".*the body is not an object.*",
    ),
    RefusedError(
        "discovery of custom resources lists the verbs in a different order, and does not include `storageVersionHash`",
        "the order has no meaning, and the hash is used only for storage migrations",
        request="GET /apis/.*",
        path=r"\.resources\[\d+\]\.(verbs.*|storageVersionHash)",
    ),
    RefusedError(
        "a pod can refer to a service account or a runtime class that does not exist",
        "pods do not have a token and run as processes, so that neither is read",
        request="POST .*/pods",
        path="answer",
        real=r".*(error looking up service account|pod rejected: RuntimeClass).*",
    ),
    RefusedError(
        "privileged containers are accepted, even if they have other errors",
        "kube-apiserver accepts them with its flag --allow-privileged, which every installer sets",
        request="POST .*/pods",
        path=r"answer|\.details\.causes",
        embedded=r"\(201, .*|.*cannot set `allowPrivilegeEscalation` to false and `privileged` to true.*",
        real=r".*disallowed by cluster policy.*",
    ),
    RefusedError(
        "a preStop hook can sleep longer than the grace period, and the size limit of a volume can be negative",
        "the grace period limits the hook, and size limits are not enforced",
        request="POST .*/pods",
        path="answer",
        embedded=r"\(201, .*",
        real=r".*(must be non-negative and less than terminationGracePeriodSeconds|SizeLimit field must be).*",
    ),
    RefusedError(
        "an empty source of a projected volume is rejected",
        "kube-apiserver accepts it, but it is probably an incomplete manifest",
        request="POST .*/pods",
        path="answer",
        embedded=r".*Projected volume source is required.*",
    ),
    RefusedError(
        "a binding without a target, or to an object other than a node, is rejected with 400",
        "kube-apiserver returns 500, which indicates a server error",
        request="POST .*/binding.*",
        path="answer",
        embedded=r"\(400, .*",
        real=r"\(500, .*",
    ),
    RefusedError(
        "a resourceVersion that is not a number is rejected with 400 in a watch, and with 409 in a write of `/scale`",
        "kube-apiserver returns 500, which indicates a server error",
        request=".*('resourceVersion': 'odd'|\"resourceVersion\": \"odd\").*",
        path="answer",
        embedded=r"\((400|409), .*",
        real=r"\(500, .*",
    ),
    RefusedError(
        "a field selector without a field is rejected with 400",
        "kube-apiserver selects all objects",
        request=".*'fieldSelector': '='.*",
        path="answer",
        embedded=r"\(400, .*",
        real=r"\(200, .*",
    ),
    RefusedError(
        "a binding or an eviction without a name applies to the pod in the path",
        "kube-apiserver also requires the name in the body",
        request=r'POST .*/(binding|eviction).*"metadata": \{\}.*',
        path="answer",
        embedded=r"\(201, .*",
        real=r"\(400, .*",
    ),
    RefusedError(
        "a body that is not UTF-8 is rejected with 400",
        "kube-apiserver stores a different string than the request contains",
        request="POST .*\ufffd.*",
        path="answer",
        embedded=r"\(400, .*",
    ),
    RefusedError(
        "a directive `$deleteFromPrimitiveList` that is not a list is rejected with 400",
        "kube-apiserver ignores it",
        request="PATCH .*deleteFromPrimitiveList.*",
        path="answer",
        embedded=r"\(400, .*",
        real=r"\(200, .*",
    ),
    RefusedError(
        "a quantity with more than 99 zeros is rejected",
        "kube-apiserver stores it as the maximum quantity",
        request=".*1e400.*",
        path="answer",
        embedded=r"\(400, .*",
        real=r"\(201, .*",
    ),
    RefusedError(
        "the annotations of an autoscaler in autoscaling/v1 contain other metrics in the v2 format",
        "they preserve the metrics when the object is written; the older format exists only in autoscaling/v1",
        request="GET .*/autoscaling/v1/.*",
        path=r"\.metadata\.annotations\.autoscaling\.alpha\.kubernetes\.io/metrics",
    ),
    RefusedError(
        "`managedFields` retain a field of autoscaling/v1 that a write of autoscaling/v2 has changed",
        "owners are not converted between versions of a kind; only autoscalers are served in two versions",
        request="PATCH .*/autoscaling/v2/.*",
        path=r"\.metadata\.managedFields.*\.f:targetCPUUtilizationPercentage",
        embedded="{}",
        real="<absent>",
    ),
    *refusedwords.TABLE,
)


def covering(found: Difference) -> Sequence[RefusedError]:
    """Return the table rows that match a difference."""
    return [one for one in TABLE if one.covers(found)]
