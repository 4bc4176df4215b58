"""Lists the accepted differences in the messages, causes and details of errors and warnings."""

import re

from tests.conformance.refusal import RefusedError

from kuberuntime.objects.meta import JSON


def with_sorted_values(message: str) -> JSON:
    """Split a message into parts that do not depend on the order of the values in it."""
    return sorted(re.split(r"[ ,]+", message))


TABLE: tuple[RefusedError, ...] = (
    RefusedError(
        "the error about a rejected change to a claim's spec does not include a diff in Go format",
        "the message already lists the fields that can be changed",
        path=r".*message",
        embedded=".*spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
    ),
    RefusedError(
        "malformed selectors and numbers in a query result in different error messages",
        "the messages contain the query parameter and the valid values; code and reason are the same",
        path=r"(\[0\])?\.message",
        embedded="(unable to parse (label|field) selector|label '|(resourceVersion|limit|timeoutSeconds): Invalid|continue key).*",
    ),
    RefusedError(
        "a patch that does not match the object is rejected with a reason",
        "kube-apiserver reports only an error, or prints the whole object; code and reason are the same",
        path=r"\.message|\.details\.causes.*|\.details",
        embedded=r".*(the server rejected our request due to an error in our request: | \"\" is invalid: patch: |'field': 'patch'|cannot be handled as a|Invalid value: \"[\[{].*).*",
        request="PATCH .*",
    ),
    RefusedError(
        "malformed JSON results in a different error message",
        "the parser creates the message; code and reason are the same",
        path=r"\.message",
        embedded="(couldn't get version/kind; json parse error|a JSON patch must be a list|the body of a (merge patch|deletion) must be|no kind .* is registered for deletions).*",
    ),
    RefusedError(
        "the error about a rejected change to a pod's spec does not include a diff in Go format",
        "the message already lists the fields that can be changed",
        path=r".*message",
        embedded=".*pod updates may not change fields other than.*",
    ),
    RefusedError(
        "the error about a failed UID precondition does not include the storage message",
        "the embedded cluster does not use etcd",
        path=r"\.message",
        embedded=".*Precondition failed: UID in precondition.*",
    ),
    RefusedError(
        "a type error in the status of a custom resource contains the path from the root of the object",
        "the field is the same",
        path=r"\.message|\.details\.causes\[\d+\]\.message",
        embedded=r".*Invalid value: \"[a-z]+\": status\.\w+ in body must be of type.*",
    ),
    RefusedError(
        "a finalizer of a custom resource without a domain does not cause a warning",
        "it is accepted, as in kube-apiserver",
        path="warnings",
        embedded="",
        real=".*prefer a domain-qualified finalizer name.*",
    ),
    RefusedError(
        "type errors in the metadata of custom resources contain the whole path",
        "kube-apiserver parses metadata separately, and reports only the rest of the path",
        path=r"\.message",
        embedded=".*into Go struct field ObjectMeta.metadata.*",
    ),
    RefusedError(
        "the error about invalid base64 does not include the position",
        "Python does not report it",
        path=r"\.message",
        embedded=".*illegal base64 data.*",
    ),
    RefusedError(
        "invalid values that are objects are shown as in the request",
        "kube-apiserver shows the Go struct with all fields and their Go names",
        path=r"\.message|\.details\.causes\[\d+\]\.message",
        embedded=r"(Duplicate|Invalid) value: \[?\{.*",
    ),
    RefusedError(
        "there are no warnings about fields without an effect",
        "there are many such warnings, which change with each version",
        path="warnings",
        embedded="",
        real=".*(is ignored for headless services|duplicate name|a negative value retains).*",
    ),
    RefusedError(
        "errors about unknown fields in an apply request identify list items by index, even in lists with keys",
        "all other messages also use the index",
        request="PATCH .*",
        path=r"\.message",
        embedded=r"failed to create typed patch object .*\[\d+\].*field not declared in schema",
    ),
    RefusedError(
        "malformed YAML results in a different error message",
        "the parser creates the message; code and reason are the same",
        path=r"\.message",
        embedded="error (converting|decoding) YAML.*",
    ),
    RefusedError(
        "type and format errors in custom resources are reported only once",
        "kube-apiserver also reports them for `/scale`, `anyOf` and formats; the field and the code are the same",
        request=".*/leaderworkersets.*",
        path=r".*\.details\.causes.*",
        real=r".*(accessor error|Checked value|must validate at least one schema|must be of type|less than or equal to 2147483647|of type int32|'field': 'status).*",
    ),
    RefusedError(
        "metadata that is not an object results in a different error message",
        "code and reason are the same",
        path=r"\.message",
        embedded=".*metadata is not an object",
    ),
    RefusedError(
        "validation errors of a CRD contain the version, and show the value as in the request",
        "kube-apiserver reports `spec.validation` if there is one version, and shows Go structs",
        request=".*/customresourcedefinitions.*",
        path=r"\.details\.causes.*",
    ),
    RefusedError(
        "requests to API groups that are not served return a Status",
        "kube-apiserver returns plain text",
        path="",
        real="404 page not found\n",
    ),
    RefusedError(
        "`POST` and `DELETE` requests to the `/scale` subresource of a custom resource return a generic error message",
        "code and reason are the same",
        request="(POST|DELETE) .*/scale",
        path=r"\.details|\.message",
    ),
    RefusedError(
        "duplicate fields are not detected",
        "the decoder uses the last value, as kube-apiserver does without strict validation",
        path=r"warnings|\.message",
        real=".*duplicate field.*",
    ),
    RefusedError(
        "there are no warnings about a rejected object",
        "the error takes precedence",
        path="warnings",
        embedded="",
        real=".*unknown field.*",
    ),
    RefusedError(
        "if the kind or version in the body is missing or does not match the path, the error message differs",
        "code and reason are the same",
        path=r"\.message",
        embedded="(.*the object has a different kind|the API version in the data .*|the object provided is unrecognized .*)",
    ),
    RefusedError(
        "protobuf is not served",
        "kubectl and client-go use JSON instead; access reviews in protobuf are accepted",
        path=r"\.message|\.details",
        real=r".*application/vnd.kubernetes.protobuf.*|\{\}",
    ),
    RefusedError(
        "the valid values of a pod field are listed in alphabetical order",
        "the order in kube-apiserver is undefined",
        request="POST .*/pods",
        path=r"\.details\.causes\[\d+\]\.message",
        embedded="Unsupported value: .*",
        rest=with_sorted_values,
    ),
    RefusedError(
        "there are no warnings about unusual but valid pods",
        "there are many such warnings, which change with each version",
        request="POST .*/pods",
        path="warnings",
        embedded="",
    ),
    RefusedError(
        "the messages about webhook errors differ",
        "code and reason are the same",
        path=r"\.details\.causes\[\d+\]\.message|\.message",
        embedded=r"(webhook|failed calling webhook) .*",
    ),
    RefusedError(
        "errors about events in events.k8s.io contain the API group",
        "kube-apiserver omits the group only in this case",
        request="POST /apis/events.k8s.io/.*",
        path=r"\.details\.group|\.message",
        embedded=r"events\.k8s\.io|Event\.events\.k8s\.io .*",
    ),
)
