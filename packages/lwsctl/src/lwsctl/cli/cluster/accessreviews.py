"""Checks whether the user has a permission, with a SelfSubjectAccessReview."""

from typing import Final, NamedTuple

from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource

ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)


class Permission(NamedTuple):
    """A verb and a resource or subresource, which is identified by its API group and plural name."""

    verb: str
    group: str
    plural: str
    subresource: str = ""

    @property
    def title(self) -> str:
        """Return the resource name to display.

        >>> Permission("get", "", "pods", "log").title
        'pods/log'
        """
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural


async def is_allowed(client: Client, permission: Permission, namespace: str) -> bool:
    """Return whether the user has the permission in a namespace, or in all namespaces.

    Raise `APIError` if the review fails.
    """
    attributes: JSONObject = {"verb": permission.verb, "group": permission.group, "resource": permission.plural}
    attributes |= {"subresource": permission.subresource} if permission.subresource else {}
    attributes |= {"namespace": namespace} if namespace else {}
    review = {**ACCESS_REVIEWS.type_meta, "metadata": {}, "spec": {"resourceAttributes": attributes}}
    return bool(meta.status(await client.create(ACCESS_REVIEWS, review)).get("allowed"))
