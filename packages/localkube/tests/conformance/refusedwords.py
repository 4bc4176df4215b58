"""Lists the accepted differences in the messages, causes and details of errors and warnings."""

import re

from tests.conformance.refusal import RefusedError

from kuberuntime.objects.meta import JSON


def with_sorted_values(message: str) -> JSON:
    """Return a message in parts that do not depend on the order of the values in it."""
    return sorted(re.split(r"[ ,]+", message))


TABLE: tuple[RefusedError, ...] = (
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
        "a type error in the status of a custom resource has its path from the object's root",
        "the field is the same",
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
        "invalid values that are objects are shown as in the request",
        "kube-apiserver shows Go's struct with all its fields, by their names in Go",
        path=r"\.message|\.details\.causes\[\d+\]\.message",
        embedded=r"(Duplicate|Invalid) value: \[?\{.*",
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
        "malformed YAML is refused with other words",
        "the words are those of the parser; code and reason are the same",
        path=r"\.message",
        embedded="error (converting|decoding) YAML.*",
    ),
    RefusedError(
        "errors of types and formats in custom resources are reported once",
        "kube-apiserver reports them again for `/scale`, `anyOf` and formats; the field and the code are the same",
        request=".*/leaderworkersets.*",
        path=r".*\.details\.causes.*",
        real=r".*(accessor error|Checked value|must validate at least one schema|must be of type|less than or equal to 2147483647|of type int32|'field': 'status).*",
    ),
    RefusedError(
        "metadata that is not an object is refused with other words",
        "code and reason are the same",
        path=r"\.message",
        embedded=".*metadata is not an object",
    ),
    RefusedError(
        "errors of a definition name their version, and the value as in the request",
        "kube-apiserver names `spec.validation` where there is one version, and shows Go's structs",
        request=".*/customresourcedefinitions.*",
        path=r"\.details\.causes.*",
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
        "protobuf is not served",
        "kubectl and client-go take JSON where it is not; reviews of access may be sent in it",
        path=r"\.message|\.details",
        real=r".*application/vnd.kubernetes.protobuf.*|\{\}",
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
        "warnings on pods that are valid but odd are not given",
        "they are many, and change with each version",
        request="POST .*/pods",
        path="warnings",
        embedded="",
    ),
    RefusedError(
        "the words on what a webhook did wrong are our own",
        "code and reason are the same",
        path=r"\.details\.causes\[\d+\]\.message|\.message",
        embedded=r"(webhook|failed calling webhook) .*",
    ),
    RefusedError(
        "errors of an event of events.k8s.io name its group",
        "kube-apiserver leaves the group out here only",
        request="POST /apis/events.k8s.io/.*",
        path=r"\.details\.group|\.message",
        embedded=r"events\.k8s\.io|Event\.events\.k8s\.io .*",
    ),
)
