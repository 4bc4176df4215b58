"""Exports the installed kinds, the manager configuration, and the webhooks."""

from leaderworkerset.core.restarts.retention import is_retained as is_pod_kept
from leaderworkerset.core.restarts.retention import release_pod
from leaderworkerset.kinds.managedkinds import MANAGED, full_definitions, managed_kinds
from leaderworkerset.kinds.registry import Registry
from leaderworkerset.manager.config.configurationfile import check as check_configuration
from leaderworkerset.manager.config.configurationfile import load as load_configuration
from leaderworkerset.manager.config.configurationfile import opted_in
from leaderworkerset.manager.kubernetesversions import is_served as is_kind_served
from leaderworkerset.manager.kubernetesversions import read as read_kubernetes_version
from leaderworkerset.operator.operatorcrd import operator_crd
from leaderworkerset.operator.operatorspec import read as read_operator_object
from leaderworkerset.webhooks.admissionprobe import NOT_CALLED as WEBHOOK_NOT_CALLED
from leaderworkerset.webhooks.admissionprobe import rejection as admission_rejection
from leaderworkerset.webhooks.admissionprobe import wait_until_reachable as until_webhooks_reached
from leaderworkerset.webhooks.certificates import CertificateError
from leaderworkerset.webhooks.certificates import expires_at as certificate_expiry
from leaderworkerset.webhooks.certificates import split as split_certificates
from leaderworkerset.webhooks.configurations import MUTATING_NAME, SECRET_NAME, VALIDATING_NAME
