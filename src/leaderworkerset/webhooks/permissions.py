"""What the webhooks' certificate keeping asks of the API server (R-CERT-1): its own secret, its own two configurations.

In: nothing. Out: permissions; those on the secret hold in the namespace of the manager only. They name their objects,
so a list or watch must select its one object by `metadata.name`.
"""

from typing import Final

from kuberuntime.objects.resources import MUTATING_WEBHOOK_CONFIGURATIONS, SECRETS, VALIDATING_WEBHOOK_CONFIGURATIONS
from kuberuntime.permissions import Permission
from leaderworkerset.webhooks.configurations import MUTATING_NAME, VALIDATING_NAME

SECRET_NAME: Final = "lws-webhook-server-cert"  # noqa: S105 - the name of an object
SERVICE_NAME: Final = "lws-webhook-service"

FOLLOW: Final = ("list", "update", "watch")

CLUSTER: Final = (
    Permission(MUTATING_WEBHOOK_CONFIGURATIONS, FOLLOW, names=(MUTATING_NAME,)),
    Permission(VALIDATING_WEBHOOK_CONFIGURATIONS, FOLLOW, names=(VALIDATING_NAME,)),
)
NAMESPACE: Final = (Permission(SECRETS, ("get", *FOLLOW), names=(SECRET_NAME,)),)
