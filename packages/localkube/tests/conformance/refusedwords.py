"""Lists the accepted differences in the messages, causes and details of errors and warnings."""

import re

from tests.conformance.refusal import RefusedError

from kuberuntime.objects.meta import JSON


def with_sorted_values(message: str) -> JSON:
    """Split a message into parts that do not depend on the order of the values in it."""
    return sorted(re.split(r"[ ,]+", message))


TABLE: tuple[RefusedError, ...] = (
    RefusedError(
        "The error about a rejected change to the spec of a claim does not include a diff in Go format.",
        "The message already lists the fields that can be changed.",
        path=r".*message",
        embedded=".*spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
    ),
    RefusedError(
        "Error messages about malformed selectors and numbers in a query have different wording.",
        "The messages contain the query parameter and the valid values. The status code and the reason match kube-apiserver.",
        path=r"(\[0\])?\.message",
        embedded="(unable to parse (label|field) selector|label '|(resourceVersion|limit|timeoutSeconds): Invalid|continue key).*",
    ),
    RefusedError(
        "If a patch does not match the object, the error message describes the problem.",
        "kube-apiserver reports only that an error occurred, or prints the whole object. The status code and the reason match kube-apiserver.",
        path=r"\.message|\.details\.causes.*|\.details",
        embedded=r".*(the server rejected our request due to an error in our request: | \"\" is invalid: patch: |'field': 'patch'|cannot be handled as a|Invalid value: \"[\[{].*).*",
        request="PATCH .*",
    ),
    RefusedError(
        "Error messages about malformed JSON have different wording.",
        "The parser of the embedded cluster creates the message. The status code and the reason match kube-apiserver.",
        path=r"\.message",
        embedded="(couldn't get version/kind; json parse error|a JSON patch must be a list|the body of a (merge patch|deletion) must be|no kind .* is registered for deletions).*",
    ),
    RefusedError(
        "The error about a rejected change to the spec of a pod does not include a diff in Go format.",
        "The message already lists the fields that can be changed.",
        path=r".*message",
        embedded=".*pod updates may not change fields other than.*",
    ),
    RefusedError(
        "The error about a failed UID precondition does not include a message from etcd.",
        "The embedded cluster does not use etcd.",
        path=r"\.message",
        embedded=".*Precondition failed: UID in precondition.*",
    ),
    RefusedError(
        "A type error in the status of a custom resource contains the full path of the field.",
        "The error identifies the same field as in kube-apiserver.",
        path=r"\.message|\.details\.causes\[\d+\]\.message",
        embedded=r".*Invalid value: \"[a-z]+\": status\.\w+ in body must be of type.*",
    ),
    RefusedError(
        "If a finalizer of a custom resource has no domain, the API server does not send a warning.",
        "The finalizer is accepted, as in kube-apiserver.",
        path="warnings",
        embedded="",
        real=".*prefer a domain-qualified finalizer name.*",
    ),
    RefusedError(
        "Type errors in the metadata of custom resources contain the full path of the field.",
        "kube-apiserver parses metadata separately, and reports only a part of the path.",
        path=r"\.message",
        embedded=".*into Go struct field ObjectMeta.metadata.*",
    ),
    RefusedError(
        "The error about invalid base64 data does not include the position.",
        "The Python decoder does not report the position.",
        path=r"\.message",
        embedded=".*illegal base64 data.*",
    ),
    RefusedError(
        "Errors show invalid objects in the same format as the request.",
        "kube-apiserver shows the Go struct with all fields and their Go names.",
        path=r"\.message|\.details\.causes\[\d+\]\.message",
        embedded=r"(Duplicate|Invalid) value: \[?\{.*",
    ),
    RefusedError(
        "The API server does not send warnings about fields that have no effect.",
        "The warnings of kube-apiserver are numerous and change with each version.",
        path="warnings",
        embedded="",
        real=".*(is ignored for headless services|duplicate name|a negative value retains).*",
    ),
    RefusedError(
        "Errors about unknown fields in an apply request identify list items by index, even in lists with keys.",
        "All other error messages also identify list items by index.",
        request="PATCH .*",
        path=r"\.message",
        embedded=r"failed to create typed patch object .*\[\d+\].*field not declared in schema",
    ),
    RefusedError(
        "Error messages about malformed YAML have different wording.",
        "The parser of the embedded cluster creates the message. The status code and the reason match kube-apiserver.",
        path=r"\.message",
        embedded="error (converting|decoding) YAML.*",
    ),
    RefusedError(
        "Type and format errors in custom resources are reported only once.",
        "kube-apiserver reports the errors again for `/scale`, `anyOf` and formats. The field and the status code are the same.",
        request=".*/leaderworkersets.*",
        path=r".*\.details\.causes.*",
        real=r".*(accessor error|Checked value|must validate at least one schema|must be of type|less than or equal to 2147483647|of type int32|'field': 'status).*",
    ),
    RefusedError(
        "The error message about metadata that is not an object has different wording.",
        "The status code and the reason match kube-apiserver.",
        path=r"\.message",
        embedded=".*metadata is not an object",
    ),
    RefusedError(
        "Validation errors of a CRD name the version of the CRD, and show values in the same format as the request.",
        "If the CRD has one version, kube-apiserver reports `spec.validation`. It shows values as Go structs.",
        request=".*/customresourcedefinitions.*",
        path=r"\.details\.causes.*",
    ),
    RefusedError(
        "The response to a request for an API group that is not served is a Status object.",
        "kube-apiserver returns plain text.",
        path="",
        real="404 page not found\n",
    ),
    RefusedError(
        "`POST` and `DELETE` requests to the `/scale` subresource of a custom resource return a generic error message.",
        "The status code and the reason match kube-apiserver.",
        request="(POST|DELETE) .*/scale",
        path=r"\.details|\.message",
    ),
    RefusedError(
        "The API server does not detect duplicate fields.",
        "The decoder uses the last value, as kube-apiserver does without strict validation.",
        path=r"warnings|\.message",
        real=".*duplicate field.*",
    ),
    RefusedError(
        "If the API server rejects an object, it does not send warnings about the object.",
        "The error is more important than the warnings.",
        path="warnings",
        embedded="",
        real=".*unknown field.*",
    ),
    RefusedError(
        "If the kind or version in the body is missing or does not match the path, the error message has different wording.",
        "The status code and the reason match kube-apiserver.",
        path=r"\.message",
        embedded="(.*the object has a different kind|the API version in the data .*|the object provided is unrecognized .*)",
    ),
    RefusedError(
        "Protobuf is supported only in the request bodies of some kubectl commands.",
        "For all other requests, kubectl and client-go use JSON.",
        path=r"\.message|\.details",
        real=r".*application/vnd.kubernetes.protobuf.*|\{\}",
    ),
    RefusedError(
        "The valid values of a pod field are listed in alphabetical order.",
        "In kube-apiserver, the order of the values is undefined.",
        request="POST .*/pods",
        path=r"\.details\.causes\[\d+\]\.message",
        embedded="Unsupported value: .*",
        rest=with_sorted_values,
    ),
    RefusedError(
        "The API server does not send warnings about unusual but valid pods.",
        "The warnings of kube-apiserver are numerous and change with each version.",
        request="POST .*/pods",
        path="warnings",
        embedded="",
    ),
    RefusedError(
        "Messages about webhook errors have different wording.",
        "The status code and the reason match kube-apiserver.",
        path=r"\.details\.causes\[\d+\]\.message|\.message",
        embedded=r"(webhook|failed calling webhook) .*",
    ),
    RefusedError(
        "Errors about events in events.k8s.io contain the API group.",
        "kube-apiserver omits the API group only in errors about events of events.k8s.io.",
        request="POST /apis/events.k8s.io/.*",
        path=r"\.details\.group|\.message",
        embedded=r"events\.k8s\.io|Event\.events\.k8s\.io .*",
    ),
)
