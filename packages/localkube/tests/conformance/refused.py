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
        "The `managedFields` of pods, nodes, leases, events and EndpointSlices start with the first server-side apply.",
        "Components write these objects often, and earlier entries would double the size of the objects.",
        request=".*/(pods|nodes|leases|events|endpointslices|endpoints)\\b.*",
        path=".*managedFields",
        embedded="<absent>",
    ),
    RefusedError(
        "A Service without a clusterIP is not assigned an address.",
        "A virtual address would not respond on this machine. The name of the Service resolves to its pods.",
        path=r".*(\.clusterIP|\.clusterIPs(\[0\])?|\.cells\[2\])",
        embedded="<absent>|<none>",
        real=r"(\[')?10\.0\..*",
    ),
    RefusedError(
        "The field manager that creates a Service owns the assigned fields, such as clusterIP and ipFamilies.",
        "kube-apiserver assigns the fields after it computes ownership. Clients that apply objects are not affected.",
        path=r".*\.f:spec\.f:(clusterIPs?|ipFamilies|ipFamilyPolicy)",
        embedded="{}",
        real="<absent>",
    ),
    RefusedError(
        "PersistentVolumeClaims do not have the finalizer `kubernetes.io/pvc-protection`.",
        "The directory of a claim is deleted together with the claim. The embedded cluster has no controller that removes the finalizer.",
        path=r".*\.finalizers",
        embedded="<absent>",
        real=r"\['kubernetes.io/pvc-protection'\]",
    ),
    RefusedError(
        "A new Node does not have the taint `node.kubernetes.io/not-ready`.",
        "The embedded cluster creates its own nodes, which are ready immediately.",
        path=r".*\.taints",
        real=".*node.kubernetes.io/not-ready.*",
    ),
    RefusedError(
        "The descriptions of table columns are shorter than in kube-apiserver.",
        "kubectl does not display the descriptions.",
        path=r".*\.columnDefinitions\[\d+\]\.description",
    ),
    RefusedError(
        "Table rows of terminated pods do not have the condition `Completed`.",
        "kubectl has ignored the condition since version 1.11.",
        path=r"\.rows\[\d+\]\.conditions",
        embedded="<absent>",
    ),
    RefusedError(
        "A strategic merge patch with an invalid directive, or an apply patch with a value of an incorrect type, is rejected with status 400 or 422.",
        "kube-apiserver returns status 500, which indicates a server error.",
        request="PATCH .*",
        path="answer",
        embedded=r"\((400|422), .*",
        real=r"\(500, .*",
    ),
    RefusedError(
        "A patch that contains a different UID is rejected with status 409.",
        "kube-apiserver returns status 422 for most kinds, and 409 for other kinds. Clients handle status 409 correctly.",
        request="PATCH .*",
        path="answer",
        embedded=r"\(409, .*UID in precondition.*",
        real=r"\(422, .*metadata.uid.*",
    ),
    RefusedError(
        "A `managedFields` entry for the `scale` subresource has a time, and is retained when the status is written.",
        "kube-apiserver writes the entry without a time, and removes it when the status is written.",
        request="GET .*/(leaderworkersets|statefulsets)/.*",
        path=r"\.metadata\.managedFields",
        embedded=r".*'subresource': 'scale'.*",
        rest=without_scale,
    ),
    RefusedError(
        "The field manager that creates a namespace owns `spec.finalizers`. The field manager that creates a StatefulSet does not own `maxUnavailable`.",
        "kube-apiserver adds and removes the fields after it computes ownership. Clients that apply objects are not affected.",
        path=r".*\.f:spec(\.f:updateStrategy\.f:rollingUpdate\.f:maxUnavailable)?",
        embedded=r"<absent>|\{'f:finalizers': \{\}\}",
    ),
    RefusedError(
        "A list item without its key is rejected when the patch is applied, before the result is validated.",
        "The embedded cluster returns status 400. kube-apiserver returns status 422.",
        request="PATCH .*",
        path="answer",
        embedded=r".*an element that omits key field.*",
    ),
    RefusedError(
        "A watch request or a list request with a future resourceVersion is rejected with status 504.",
        "For a watch, kube-apiserver waits. Only clients that switched servers request a future resourceVersion.",
        request="WATCH .*",
        path=r"answer|\[0\].*",
    ),
    RefusedError(
        "In a terminating namespace, `deletionGracePeriodSeconds` is 0. In a finalized namespace, the list of finalizers is empty.",
        "All other terminating objects have the same values.",
        request=".*/namespaces/.*",
        path=r"\.metadata\.deletionGracePeriodSeconds|\.spec\.finalizers",
        embedded=r"0|\[\]",
        real="<absent>",
    ),
    RefusedError(
        "The names of a CRD are accepted immediately when the CRD is created.",
        "The embedded cluster has no controller that accepts the names later.",
        request=".*/customresourcedefinitions.*",
        path=r"\.status\.(acceptedNames|conditions)",
    ),
    RefusedError(
        "A request body that contains `null` is rejected, because it is not an object.",
        "kube-apiserver treats `null` as an empty object.",
        path="answer",
        embedded=".*the body is not an object.*",
    ),
    RefusedError(
        "Discovery of custom resources lists the verbs in a different order, and does not include `storageVersionHash`.",
        "The order of the verbs has no meaning, and the hash is used only for storage migrations.",
        request="GET /apis/.*",
        path=r"\.resources\[\d+\]\.(verbs.*|storageVersionHash)",
    ),
    RefusedError(
        "A pod can refer to a service account or a runtime class that does not exist.",
        "Pods run as processes without a token, so service accounts and runtime classes are not read.",
        request="POST .*/pods",
        path="answer",
        real=r".*(error looking up service account|pod rejected: RuntimeClass).*",
    ),
    RefusedError(
        "Privileged containers are permitted without a flag.",
        "kube-apiserver permits privileged containers only if the flag `--allow-privileged` is set. Every installer sets this flag.",
        request="POST .*/pods",
        path=r"answer|\.details\.causes",
        embedded=r"\(201, .*|.*cannot set `allowPrivilegeEscalation` to false and `privileged` to true.*",
        real=r".*disallowed by cluster policy.*",
    ),
    RefusedError(
        "A preStop hook can sleep longer than the grace period, and the size limit of a volume can be negative.",
        "The grace period limits the duration of the hook, and negative size limits are not enforced.",
        request="POST .*/pods",
        path="answer",
        embedded=r"\(201, .*",
        real=r".*(must be non-negative and less than terminationGracePeriodSeconds|SizeLimit field must be).*",
    ),
    RefusedError(
        "A projected volume with an empty source is rejected.",
        "kube-apiserver accepts an empty source, but the manifest is probably incomplete.",
        request="POST .*/pods",
        path="answer",
        embedded=r".*Projected volume source is required.*",
    ),
    RefusedError(
        "A binding without a target, or with a target that is not a node, is rejected with status 400.",
        "kube-apiserver returns status 500, which indicates a server error.",
        request="POST .*/binding.*",
        path="answer",
        embedded=r"\(400, .*",
        real=r"\(500, .*",
    ),
    RefusedError(
        "A resourceVersion that is not a number is rejected with status 400 in a watch request, and with status 409 in an update of `/scale`.",
        "kube-apiserver returns status 500, which indicates a server error.",
        request=".*('resourceVersion': 'odd'|\"resourceVersion\": \"odd\").*",
        path="answer",
        embedded=r"\((400|409), .*",
        real=r"\(500, .*",
    ),
    RefusedError(
        "A field selector without a field name is rejected with status 400.",
        "kube-apiserver selects all objects.",
        request=".*'fieldSelector': '='.*",
        path="answer",
        embedded=r"\(400, .*",
        real=r"\(200, .*",
    ),
    RefusedError(
        "A binding or an eviction without a name applies to the pod in the path.",
        "kube-apiserver also requires the name in the request body.",
        request=r'POST .*/(binding|eviction).*"metadata": \{\}.*',
        path="answer",
        embedded=r"\(201, .*",
        real=r"\(400, .*",
    ),
    RefusedError(
        "A request body that is not valid UTF-8 is rejected with status 400.",
        "kube-apiserver stores a string that differs from the request.",
        request="POST .*\ufffd.*",
        path="answer",
        embedded=r"\(400, .*",
    ),
    RefusedError(
        "A patch is rejected with status 400 if its `$deleteFromPrimitiveList` directive is not a list.",
        "kube-apiserver ignores the directive.",
        request="PATCH .*deleteFromPrimitiveList.*",
        path="answer",
        embedded=r"\(400, .*",
        real=r"\(200, .*",
    ),
    RefusedError(
        "A quantity with more than 99 zeros is rejected.",
        "kube-apiserver stores the maximum quantity instead.",
        request=".*1e400.*",
        path="answer",
        embedded=r"\(400, .*",
        real=r"\(201, .*",
    ),
    RefusedError(
        "In autoscaling/v1, metrics without a v1 field are stored in an annotation of the HorizontalPodAutoscaler, in the v2 format.",
        "The metrics are preserved when a client writes the object with autoscaling/v1. kube-apiserver uses an older format, which exists only in autoscaling/v1.",
        request="GET .*/autoscaling/v1/.*",
        path=r"\.metadata\.annotations\.autoscaling\.alpha\.kubernetes\.io/metrics",
    ),
    RefusedError(
        "The `managedFields` retain a field of autoscaling/v1 after a client has changed the field in autoscaling/v2.",
        "`managedFields` are not converted between versions of a kind. Only HorizontalPodAutoscalers are served in two versions.",
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
