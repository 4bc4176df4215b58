"""The differences that stay, each with its reason. `docs/reference/conformance.md` is made from this table."""

import re
from dataclasses import dataclass

from leaderworkerset.api.meta import JSON


@dataclass(frozen=True)
class Refused:
    """One difference: at which paths of answers, what the embedded and the real server say there, and why it stays."""

    what: str
    why: str
    path: str = ".*"
    embedded: str = ".*"
    real: str = ".*"
    request: str = ".*"

    def covers(self, request: str, path: str, embedded: JSON, real: JSON) -> bool:
        """Tell whether a difference is this one."""
        pairs = (
            (self.request, request),
            (self.path, path),
            (self.embedded, str(embedded)),
            (self.real, str(real)),
        )
        return all(re.fullmatch(pattern, text, re.DOTALL) for pattern, text in pairs)


TABLE: tuple[Refused, ...] = (
    Refused(
        "`managedFields` of pods, nodes, leases, events and endpoint slices begin with the first server-side apply",
        "programs write these objects all the time; entries would double their size",
        request=".*/(pods|nodes|leases|events|endpointslices|endpoints)\\b.*",
        path=".*managedFields",
        embedded="<absent>",
    ),
    Refused(
        "a Service without a clusterIP gets `None` instead of an address of its own",
        "nothing on this machine would answer at a virtual address; its name resolves to its pods",
        path=r".*(\.clusterIP|\.clusterIPs\[0\]|\.cells\[2\])",
        embedded="None",
        real=r"10\.0\..*",
    ),
    Refused(
        "what a Service is given (clusterIP, ipFamilies) is owned by whoever made it",
        "kube-apiserver gives it after the fields were counted; of no effect on those who apply",
        path=r".*\.f:spec\.f:(clusterIPs?|ipFamilies|ipFamilyPolicy)",
        embedded="{}",
        real="<absent>",
    ),
    Refused(
        "claims carry no finalizer `kubernetes.io/pvc-protection`",
        "a claim's directory is removed with the claim; there is no controller that would take the finalizer off",
        path=r".*\.finalizers",
        embedded="<absent>",
        real=r"\['kubernetes.io/pvc-protection'\]",
    ),
    Refused(
        "a new Node is not tainted `node.kubernetes.io/not-ready`",
        "the nodes are made by the cluster itself, and ready when they are made",
        path=r".*\.taints",
        real=".*node.kubernetes.io/not-ready.*",
    ),
    Refused(
        "columns of tables are described in fewer words",
        "kubectl does not show them",
        path=r".*\.columnDefinitions\[\d+\]\.description",
    ),
    Refused(
        "a refused change of a claim's spec is not followed by its difference as Go prints it",
        "the text before it says what may not change",
        path=r".*message",
        embedded=".*spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
    ),
    Refused(
        "malformed selectors and numbers of a query are refused with other words",
        "they name the option and say what is wanted; code and reason are the same",
        path=r"\.message",
        embedded="(unable to parse (label|field) selector|label '|(resourceVersion|limit|timeoutSeconds): Invalid|continue key).*",
    ),
    Refused(
        "rows of ended pods in a table carry no condition `Completed`",
        "kubectl has not looked at it since 1.11",
        path=r"\.rows\[\d+\]\.conditions",
        embedded="<absent>",
    ),
    Refused(
        "a patch that does not fit is refused with a sentence on why",
        "kube-apiserver says only that there is an error, or prints the whole object; code and reason are the same",
        path=r"\.message|\.details\.causes.*|\.details",
        embedded=r".*(the server rejected our request due to an error in our request: | \"\" is invalid: patch: |'field': 'patch'|cannot be handled as a|Invalid value: \"[\[{].*).*",
        request="PATCH .*",
    ),
    Refused(
        "malformed JSON is refused with other words",
        "the words are those of the parser; code and reason are the same",
        path=r"\.message",
        embedded="(couldn't get version/kind; json parse error|a JSON patch is a list|the body of a merge patch must be).*",
    ),
    Refused(
        "a strategic merge patch with a faulty directive or without a merge key is refused with 400",
        "kube-apiserver answers 500, which says that it itself had failed",
        request="PATCH .*",
        path="answer",
        embedded=r"\(400, .*",
        real=r"\(500, .*",
    ),
    Refused(
        "a refused change of a pod's spec is not followed by its difference as Go prints it",
        "the text before it says what may not change",
        path=r".*message",
        embedded=".*pod updates may not change fields other than.*",
    ),
    Refused(
        "a failed precondition on the UID is told without the storage's own words",
        "there is no etcd here",
        path=r"\.message",
        embedded=".*Precondition failed: UID in precondition.*",
    ),
    Refused(
        "a patch that names another UID is refused with 409",
        "kube-apiserver answers 422 for most kinds and 409 for others; clients treat 409 as what it is",
        request="PATCH .*",
        path="answer",
        embedded=r"\(409, .*UID in precondition.*",
        real=r"\(422, .*metadata.uid.*",
    ),
    Refused(
        "a type fault of a custom resource's status names its path from the object's root",
        "the field beside it is the same",
        path=r"\.message|\.details\.causes\[\d+\]\.message",
        embedded=r".*Invalid value: \"[a-z]+\": status\.\w+ in body must be of type.*",
    ),
    Refused(
        "a timestamp in `metadata` that is none is passed over where the server sets it anyway",
        "what was sent would be replaced",
        path="answer",
        real=".*parsing time.*",
    ),
    Refused(
        "a finalizer of a custom resource without a domain gives no warning",
        "it is accepted, as there",
        path="warnings",
        embedded="",
        real=".*prefer a domain-qualified finalizer name.*",
    ),
    Refused(
        "type faults in the metadata of custom resources name the whole path",
        "kube-apiserver reads metadata apart and names the rest of the path only",
        path=r"\.message",
        embedded=".*into Go struct field ObjectMeta.metadata.*",
    ),
    Refused(
        "faulty base64 is refused without the position of the fault",
        "Python does not tell it",
        path=r"\.message",
        embedded=".*illegal base64 data.*",
    ),
    Refused(
        "faulty values that are objects are shown as they were sent",
        "kube-apiserver shows Go's struct with all its fields, by their names in Go",
        path=r"\.message|\.details\.causes\[\d+\]\.message",
        embedded=r"(Duplicate|Invalid) value: \[?\{.*",
    ),
    Refused(
        "an entry of `managedFields` for the subresource `scale` carries its time and stays when the status is written",
        "kube-apiserver writes it without a time, and loses it with the next write of the status",
        path=r".*\.managedFields\[\d+\].*",
        embedded=r".*'subresource': 'scale'.*",
    ),
    Refused(
        "the maker of a namespace owns its `spec.finalizers`, the maker of a StatefulSet no `maxUnavailable`",
        "kube-apiserver adds and removes these behind the count of fields; of no effect on those who apply",
        path=r".*\.f:spec(\.f:updateStrategy\.f:rollingUpdate\.f:maxUnavailable)?",
        embedded=r"<absent>|\{'f:finalizers': \{\}\}",
    ),
    Refused(
        "warnings on fields that have no effect are not given",
        "they are many, and change with each version",
        path="warnings",
        embedded="",
        real=".*(is ignored for headless services|duplicate name|a negative value retains).*",
    ),
    Refused(
        "an event of events.k8s.io with faults is named with its group",
        "kube-apiserver forgets the group here only",
        request="POST /apis/events.k8s.io/.*",
        path=r"\.details\.group|\.message",
        embedded=r"events\.k8s\.io|Event\.events\.k8s\.io .*",
    ),
)


def covers(request: str, path: str, embedded: JSON, real: JSON) -> bool:
    """Tell whether a difference is in the table."""
    return any(one.covers(request, path, embedded, real) for one in TABLE)
