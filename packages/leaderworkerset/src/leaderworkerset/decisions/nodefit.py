"""Exports group requests, free node resources, and gang schedulers."""

from kuberuntime.objects.podresources import add_amounts as add_demand
from leaderworkerset.core.gang.demand import Demand
from leaderworkerset.core.gang.demand import pod_requests as demand_of_pod
from leaderworkerset.core.gang.fit import Amounts, Need, count_needs, free_space, read_need, read_requests
from leaderworkerset.core.gang.fit import obstacle as fit_obstacle
from leaderworkerset.core.gang.gangs import PROVIDERS as GANG_PROVIDERS
from leaderworkerset.core.gang.gate import BUILT_IN_NAME as BUILT_IN_GATE
from leaderworkerset.core.gang.native import KUBERNETES, POD_GROUPS
from leaderworkerset.core.gang.native import NAME as NATIVE_GANG_NAME
from leaderworkerset.core.gang.native import NATIVE as NATIVE_GANG
from leaderworkerset.core.gang.provider import DEFAULT_SCHEDULER, scheduler_name
from leaderworkerset.core.gang.volcano import GROUP_NAME as VOLCANO_GROUP_NAME
from leaderworkerset.core.policies.workloadnames import linked_pod_group
