"""Sets a separate subdomain for each group if the policy is `UniquePerReplica` (R-ADM-7)."""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.policytypes import WITH_OWN_SERVICES
from leaderworkerset.core.policies.celmutations import (
    LEADER,
    PodRule,
    add,
    annotation,
    conditional_patches,
    list_literal,
    string_literal,
)
from leaderworkerset.core.policies.podedits import with_spec
from leaderworkerset.core.policies.policy import Member, Policy


def admit(pod: JSONObject, member: Member) -> JSONObject:
    """Set the subdomain of the leader to its host name. The StatefulSet sets the subdomain of workers."""
    is_unique = meta.annotations(pod).get(labels.SUBDOMAIN_POLICY) in WITH_OWN_SERVICES
    return with_spec(pod, {"subdomain": groupname.hostname(pod)}) if member.is_leader and is_unique else pod


_OWN: Final = f"{LEADER} && {annotation(labels.SUBDOMAIN_POLICY)} in {list_literal(WITH_OWN_SERVICES)}"

RULE: Final = PodRule(
    variables={
        "host": 'object.spec.?hostname.orValue("") == "" ? object.metadata.name : object.spec.hostname',
        "subdomain": f'{_OWN} ? variables.host : object.spec.?subdomain.orValue("")',
    },
    patches=(conditional_patches(_OWN, add(string_literal("/spec/subdomain"), "variables.subdomain")),),
)

POLICY: Final = Policy(admit=admit, rule=RULE)
