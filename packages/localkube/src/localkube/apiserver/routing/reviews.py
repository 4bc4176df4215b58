"""Implements access reviews. Every user with the token is the administrator, and has all permissions.

Supports POST for SelfSubjectReview, SelfSubjectAccessReview, SelfSubjectRulesReview and SubjectAccessReview, which are
not stored.
"""

from typing import Final

from kuberuntime.client.transport import Request
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from localkube.apiserver.model import apierrors
from localkube.apiserver.requests import body, protobuf

ADMIN_GROUPS: Final = ["system:masters", "system:authenticated"]

RESOURCES: Final = (
    Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False),
    Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False),
    Resource("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", namespaced=False),
    Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False),
)
BY_PATH: Final = {resource.path(): resource for resource in RESOURCES}


def complete_review(request: Request, user: str) -> JSONObject:
    """Return the completed review. The path must be in `BY_PATH`."""
    if request.method != "POST":
        raise apierrors.method_not_allowed()
    resource = BY_PATH[request.path]
    media = body.media_type(request.headers)
    # kubectl sends protobuf, whose content does not affect the response.
    sent = {} if media == protobuf.MEDIA else body.parse(request.body, media)
    if not isinstance(sent, dict) or sent.get("kind", resource.kind) != resource.kind:
        raise apierrors.bad_request(f"the body must be a {resource.kind} of {resource.api_version}")
    spec = sent.get("spec")
    identity = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {"creationTimestamp": None}}
    return {**identity, **({"spec": spec} if spec is not None else {}), "status": _review_status(resource.kind, user)}


def _review_status(kind: str, user: str) -> JSONObject:
    match kind:
        case "SelfSubjectReview":
            return {"userInfo": {"username": user, "groups": ADMIN_GROUPS}}
        case "SelfSubjectRulesReview":
            rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
            urls = [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
            return {"resourceRules": rules, "nonResourceRules": urls, "incomplete": False}
        case _:
            return {"allowed": True, "reason": "the embedded cluster has one user, its administrator"}
