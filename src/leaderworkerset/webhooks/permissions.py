"""The permissions to keep the webhooks' certificate (R-CERT-1): its own secret, its own two configurations.

Those for the secret are limited to the manager's namespace. The permissions name their objects, so a list or watch must
select its one object by `metadata.name`.
"""

from typing import Final

from kuberuntime.objects.resources import MUTATING_WEBHOOK_CONFIGURATIONS, SECRETS, VALIDATING_WEBHOOK_CONFIGURATIONS
from kuberuntime.policyrules import Permission
from leaderworkerset.webhooks.configurations import MUTATING_NAME, VALIDATING_NAME

SECRET_NAME: Final = "lws-webhook-server-cert"  # noqa: S105 - the name of an object
SERVICE_NAME: Final = "lws-webhook-service"

FOLLOW: Final = ("list", "update", "watch")

CLUSTER: Final = (
    Permission(MUTATING_WEBHOOK_CONFIGURATIONS, FOLLOW, names=(MUTATING_NAME,)),
    Permission(VALIDATING_WEBHOOK_CONFIGURATIONS, FOLLOW, names=(VALIDATING_NAME,)),
)
NAMESPACE: Final = (Permission(SECRETS, ("get", *FOLLOW), names=(SECRET_NAME,)),)
