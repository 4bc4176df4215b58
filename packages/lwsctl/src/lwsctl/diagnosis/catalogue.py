"""Lists the catalogue of causes. If several causes match, the first cause explains the others. Pure.

A cause belongs to the stage at which a group is stuck: no controller reconciles it, its pods are rejected, no
restarts remain, a node is lost, pods cannot be scheduled, pods cannot be started, pods fail, the group does not form,
or the rollout waits. The meaning of a code never changes. New causes receive new codes, and codes of removed causes
are not reused.
"""

from typing import Final

from lwsctl.diagnosis.causes import (
    closednodes,
    completions,
    containers,
    contention,
    deviceclaims,
    featuregates,
    hangs,
    images,
    lostnodes,
    managers,
    missingpods,
    nameconflicts,
    pendingmoves,
    pendingprobes,
    refusals,
    resizes,
    rollouts,
    scaledworkers,
    scheduling,
    schedulinggates,
    sets,
    starts,
    unreconciled,
    volumes,
)
from lwsctl.diagnosis.causes.components import (
    autoscalers,
    containerrefusals,
    hooks,
    imagepulls,
    injections,
    kubeletrefusals,
    podpolicies,
)
from lwsctl.diagnosis.causes.kubelets import evictedpods, probekills
from lwsctl.diagnosis.finding import Cause
from lwsctl.model.health import Verdict

CATALOGUE: Final[tuple[Cause, ...]] = (
    # No controller reconciles the object.
    unreconciled.held_by_finalizer,
    refusals.NAMESPACE_ENDS,
    unreconciled.field_is_unreadable,
    managers.manager_is_down,
    managers.nobody_leads,
    managers.manager_is_silent,
    # Objects of a DisaggregatedSet are rejected.
    sets.scaler_is_taken,
    sets.part_is_rejected,
    # Objects other than pods are rejected.
    nameconflicts.name_is_taken,
    nameconflicts.object_is_rejected,
    contention.field_is_contested,
    # Groups cannot be gang scheduled, because objects are missing or a feature gate is disabled.
    featuregates.lacks_prerequisite,
    featuregates.lacks_gate,
    # Pods are rejected. Specific causes are before general causes.
    podpolicies.policy_is_impaired,
    refusals.webhook_is_untrusted,
    refusals.webhook_is_unreachable,
    refusals.DENIED_BY_WEBHOOK,
    refusals.DENIED_BY_POLICY,
    refusals.quota_is_exhausted,
    refusals.QUOTA_INCOMPLETE,
    refusals.LIMIT_RANGE,
    refusals.POD_SECURITY,
    refusals.SECURITY_CONSTRAINTS,
    refusals.NO_SERVICE_ACCOUNT,
    refusals.NO_PRIORITY_CLASS,
    refusals.NO_RUNTIME_CLASS,
    refusals.NOT_ALLOWED,
    refusals.name_is_too_long,
    refusals.INVALID_TEMPLATE,
    refusals.REFUSED,
    unreconciled.statefulset_without_controller,
    missingpods.has_not_made_pods,
    unreconciled.revision_is_missing,
    # Groups have no remaining restarts.
    starts.budget_is_spent,
    hangs.is_late,
    # The node is lost, or pods do not terminate.
    lostnodes.find_missing_node,
    lostnodes.node_is_not_ready,
    lostnodes.held_by_finalizer,
    lostnodes.does_not_end,
    # Pods cannot be scheduled.
    schedulinggates.awaits_queue,
    schedulinggates.is_gated,
    schedulinggates.unknown_scheduler,
    schedulinggates.no_scheduler,
    autoscalers.nodes_are_added,
    scheduling.no_surge_room,
    volumes.NO_CLAIM,
    volumes.claim_is_pending,
    volumes.VOLUME_ELSEWHERE,
    deviceclaims.device_claim_is_not_met,
    scheduling.domain_is_held,
    schedulinggates.gang_is_incomplete,
    scheduling.ACCELERATORS,
    scheduling.MEMORY,
    scheduling.CPU,
    scheduling.STORAGE,
    scheduling.TOO_MANY_PODS,
    scheduling.spread,
    scheduling.PORTS,
    closednodes.no_labels,
    closednodes.closed_by_component,
    closednodes.find_tainted_nodes,
    closednodes.find_cordoned_nodes,
    scheduling.UNSCHEDULABLE,
    # Pods cannot be started.
    kubeletrefusals.is_rejected,
    evictedpods.was_evicted,
    containerrefusals.NO_DEVICE,
    containerrefusals.INSECURE,
    containerrefusals.BAD_PATH,
    containerrefusals.BAD_FIELD,
    containers.NO_SANDBOX,
    images.BAD_CONFIG,
    volumes.attached_elsewhere,
    volumes.cannot_mount,
    images.INVALID,
    images.NO_PROGRAM,
    images.DENIED,
    images.UNREACHABLE,
    images.NOT_FOUND,
    images.NEVER_PULLED,
    images.NOT_PULLED,
    images.NO_COMMAND,
    images.NOT_STARTED,
    # Pods fail.
    hooks.start_hook_fails,
    injections.injection_is_unready,
    containers.out_of_memory,
    containers.init_fails,
    probekills.killed_by_probe,
    containers.crashes,
    completions.has_ended,
    hangs.restarts_in_place,
    starts.backs_off,
    # Pods are running without progress.
    hangs.hangs,
    resizes.not_resized,
    # The group does not form.
    scaledworkers.workers_were_scaled,
    starts.names_do_not_resolve,
    imagepulls.is_pulled,
    pendingprobes.not_due,
    containers.gate_is_closed,
    missingpods.awaits_old_workers,
    starts.awaits_leader,
    starts.rendezvous,
    containers.unready,
    unreconciled.outdated_definition,
    rollouts.makes_no_progress,
    rollouts.stays_between_two_steps,
    rollouts.is_not_in_place,
    pendingmoves.is_never_moved,
    # There is no error.
    rollouts.is_deleting,
    lostnodes.ends_slowly,
    starts.was_recreated,
    starts.is_starting,
    completions.others_run,
    rollouts.held_by_partition,
    rollouts.blocked_by_group,
    rollouts.goes_on,
    pendingmoves.waits_for_move,
    sets.set_goes_on,
)

OF_SETS: Final[tuple[Cause, ...]] = (
    unreconciled.held_by_finalizer,
    managers.manager_is_down,
    managers.nobody_leads,
    managers.manager_is_silent,
    sets.scaler_is_taken,
    sets.part_is_rejected,
    contention.field_is_contested,
    rollouts.is_deleting,
    sets.set_goes_on,
)
"""The causes for a DisaggregatedSet itself. All other causes apply to LeaderWorkerSets."""

NO_CAUSE: Final = Cause(
    code="LWS-E099",
    title="unknown cause",
    meaning="The object is not ready, and no known cause explains it.",
    remedy="Run `lws describe`, and read the log of the unready rank.",
    find=lambda _: None,
    verdict=Verdict.UNKNOWN,
)

NOT_READ: Final = Cause(
    code="LWS-E119",
    title="the evidence could not be read",
    meaning="The object is not ready. The evidence could not be read, because a permission is missing or the API server did not respond.",
    remedy="Grant permission to list these kinds, or try again.",
    find=lambda _: None,
    verdict=Verdict.UNREAD,
)

BY_CODE: Final = {cause.code: cause for cause in (*CATALOGUE, *OF_SETS, NO_CAUSE, NOT_READ)}
"""All causes that have a code. This includes causes without a function that finds them."""
