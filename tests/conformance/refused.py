"""The differences that stay, each with its reason. `docs/reference/conformance.md` is made from this table.

A whole run fails where one of them does not occur any more (`witness.py`).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.conformance.difference import Difference

from kuberuntime.objects.meta import JSON, JSONObject


@dataclass(frozen=True)
class RefusedError:
    """One difference: at which paths of answers, what the embedded and the real server say there, and why it stays.

    `rest`, where given, is what is left of each side without the difference: that must be equal.
    """

    what: str
    why: str
    path: str = ".*"
    embedded: str = ".*"
    real: str = ".*"
    request: str = ".*"
    rest: Callable[[Any], JSON] | None = None

    def covers(self, found: Difference) -> bool:
        """Return whether a difference is this one."""
        pairs = (
            (self.request, found.request),
            (self.path, found.path),
            (self.embedded, str(found.embedded)),
            (self.real, str(found.real)),
        )
        if not all(re.fullmatch(pattern, text, re.DOTALL) for pattern, text in pairs):
            return False
        return self.rest is None or self.rest(found.embedded) == self.rest(found.real)


def with_sorted_values(message: str) -> JSON:
    """Return the parts of a message without the order of the values that it lists."""
    return sorted(re.split(r"[ ,]+", message))


def without_scale(entries: list[JSONObject]) -> JSON:
    """Return the entries of `managedFields` that are not of the subresource `scale`, in any order."""
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
        "a refused change of a claim's spec is not followed by its difference as Go prints it",
        "the text before it says what may not change",
        path=r".*message",
        embedded=".*spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
    ),
    RefusedError(
        "malformed selectors and numbers of a query are refused with other words",
        "they name the option and say what is valid; code and reason are the same",
        path=r"(\[0\])?\.message",
        embedded="(unable to parse (label|field) selector|label '|(resourceVersion|limit|timeoutSeconds): Invalid|continue key).*",
    ),
    RefusedError(
        "rows of ended pods in a table carry no condition `Completed`",
        "kubectl ignores it since 1.11",
        path=r"\.rows\[\d+\]\.conditions",
        embedded="<absent>",
    ),
    RefusedError(
        "a patch that does not fit is refused with a sentence on why",
        "kube-apiserver says only that there is an error, or prints the whole object; code and reason are the same",
        path=r"\.message|\.details\.causes.*|\.details",
        embedded=r".*(the server rejected our request due to an error in our request: | \"\" is invalid: patch: |'field': 'patch'|cannot be handled as a|Invalid value: \"[\[{].*).*",
        request="PATCH .*",
    ),
    RefusedError(
        "malformed JSON is refused with other words",
        "the words are those of the parser; code and reason are the same",
        path=r"\.message",
        embedded="(couldn't get version/kind; json parse error|a JSON patch is a list|the body of a (merge patch|deletion) must be|no kind .* is registered for deletions).*",
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
        "a refused change of a pod's spec is not followed by its difference as Go prints it",
        "the text before it says what may not change",
        path=r".*message",
        embedded=".*pod updates may not change fields other than.*",
    ),
    RefusedError(
        "the error of a failed precondition on the UID leaves out the storage's message",
        "there is no etcd here",
        path=r"\.message",
        embedded=".*Precondition failed: UID in precondition.*",
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
        "a type error in the status of a custom resource has its path from the object's root",
        "the field beside it is the same",
        path=r"\.message|\.details\.causes\[\d+\]\.message",
        embedded=r".*Invalid value: \"[a-z]+\": status\.\w+ in body must be of type.*",
    ),
    RefusedError(
        "a finalizer of a custom resource without a domain gives no warning",
        "it is accepted, as there",
        path="warnings",
        embedded="",
        real=".*prefer a domain-qualified finalizer name.*",
    ),
    RefusedError(
        "type errors in the metadata of custom resources have the whole path",
        "kube-apiserver reads metadata apart and names the rest of the path only",
        path=r"\.message",
        embedded=".*into Go struct field ObjectMeta.metadata.*",
    ),
    RefusedError(
        "invalid base64 is refused without the position of the error",
        "Python does not report it",
        path=r"\.message",
        embedded=".*illegal base64 data.*",
    ),
    RefusedError(
        "invalid values that are objects are shown as they were sent",
        "kube-apiserver shows Go's struct with all its fields, by their names in Go",
        path=r"\.message|\.details\.causes\[\d+\]\.message",
        embedded=r"(Duplicate|Invalid) value: \[?\{.*",
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
        "warnings on fields that have no effect are not given",
        "they are many, and change with each version",
        path="warnings",
        embedded="",
        real=".*(is ignored for headless services|duplicate name|a negative value retains).*",
    ),
    RefusedError(
        "unknown fields of an apply are named by their index in lists with keys",
        "all other messages name them so",
        request="PATCH .*",
        path=r"\.message",
        embedded=r"failed to create typed patch object .*\[\d+\].*field not declared in schema",
    ),
    RefusedError(
        "an item without its key is refused when it is applied, not when the result is checked",
        "the code is 400 instead of 422",
        request="PATCH .*",
        path="answer",
        embedded=r".*an element that omits key field.*",
    ),
    RefusedError(
        "malformed YAML is refused with other words",
        "the words are those of the parser; code and reason are the same",
        path=r"\.message",
        embedded="error (converting|decoding) YAML.*",
    ),
    RefusedError(
        "a watch from a version that is still to come is refused with 504, as a list is",
        "kube-apiserver waits for it; no client asks for it but one that spoke to another server before",
        request="WATCH .*",
        path=r"answer|\[0\].*",
    ),
    RefusedError(
        "a namespace that is being deleted carries `deletionGracePeriodSeconds: 0`, one that is finalized an empty list",
        "as all other objects do",
        request=".*/namespaces/.*",
        path=r"\.metadata\.deletionGracePeriodSeconds|\.spec\.finalizers",
        embedded=r"0|\[\]",
        real="<absent>",
    ),
    RefusedError(
        "errors of types and formats in custom resources are reported once",
        "kube-apiserver reports them again for `/scale`, `anyOf` and formats; the field and the code are the same",
        request=".*/leaderworkersets.*",
        path=r".*\.details\.causes.*",
        real=r".*(accessor error|Checked value|must validate at least one schema|must be of type|less than or equal to 2147483647|of type int32|'field': 'status).*",
    ),
    RefusedError(
        "metadata that is no object is refused with other words",
        "code and reason are the same",
        path=r"\.message",
        embedded=".*metadata is not an object",
    ),
    RefusedError(
        "errors of a definition name the version they are in, and the value as it was sent",
        "kube-apiserver names `spec.validation` where there is one version, and shows Go's structs",
        request=".*/customresourcedefinitions.*",
        path=r"\.details\.causes.*",
    ),
    RefusedError(
        "the names of a definition are accepted when it is made",
        "there is no controller that would do so a moment later",
        request=".*/customresourcedefinitions.*",
        path=r"\.status\.(acceptedNames|conditions)",
    ),
    RefusedError(
        "paths below groups that nobody serves are refused with a Status",
        "kube-apiserver answers in plain text",
        path="",
        real="404 page not found\n",
    ),
    RefusedError(
        "a POST to or DELETE of `/scale` of a custom resource is refused with the words of all others",
        "code and reason are the same",
        request="(POST|DELETE) .*/scale",
        path=r"\.details|\.message",
    ),
    RefusedError(
        "fields that are there twice are not noticed",
        "the decoder takes the last, as kube-apiserver does without strict validation",
        path=r"warnings|\.message",
        real=".*duplicate field.*",
    ),
    RefusedError(
        "an object that is refused is not also warned of",
        "the error comes first",
        path="warnings",
        embedded="",
        real=".*unknown field.*",
    ),
    RefusedError(
        "the words on bodies of another kind or version, or without one, are our own",
        "code and reason are the same",
        path=r"\.message",
        embedded="(.*the object is of another kind|the API version in the data .*|the object provided is unrecognized .*)",
    ),
    RefusedError(
        "a body of `null` is no object",
        "kube-apiserver takes it for an empty one",
        path="answer",
        embedded=".*the body is not an object.*",
    ),
    RefusedError(
        "protobuf is not served",
        "kubectl and client-go take JSON where it is not; reviews of access may be sent in it",
        path=r"\.message|\.details",
        real=r".*application/vnd.kubernetes.protobuf.*|\{\}",
    ),
    RefusedError(
        "discovery of custom resources lists the verbs in another order, and no `storageVersionHash`",
        "order has no meaning, and the hash none outside of an upgrade of the storage",
        request="GET /apis/.*",
        path=r"\.resources\[\d+\]\.(verbs.*|storageVersionHash)",
    ),
    RefusedError(
        "the values that a field of a pod may have are listed in the order of the alphabet",
        "kube-apiserver has no order",
        request="POST .*/pods",
        path=r"\.details\.causes\[\d+\]\.message",
        embedded="Unsupported value: .*",
        rest=with_sorted_values,
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
        "warnings on pods that are valid but odd are not given",
        "they are many, and change with each version",
        request="POST .*/pods",
        path="warnings",
        embedded="",
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
        "kube-apiserver takes it for one that selects everything",
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
        "an evicted pod carries no condition `DisruptionTarget`",
        "nothing here reads it",
        request="GET .*/pods.*",
        path=r"\.status\.conditions",
        real=".*EvictionByEvictionAPI.*",
    ),
    RefusedError(
        "the words on what a webhook did wrong are our own",
        "code and reason are the same",
        path=r"\.details\.causes\[\d+\]\.message|\.message",
        embedded=r"(webhook|failed calling webhook) .*",
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
    RefusedError(
        "errors of an event of events.k8s.io name its group",
        "kube-apiserver leaves the group out here only",
        request="POST /apis/events.k8s.io/.*",
        path=r"\.details\.group|\.message",
        embedded=r"events\.k8s\.io|Event\.events\.k8s\.io .*",
    ),
)


def covering(found: Difference) -> Sequence[RefusedError]:
    """Return those of the table that a difference is."""
    return [one for one in TABLE if one.covers(found)]
