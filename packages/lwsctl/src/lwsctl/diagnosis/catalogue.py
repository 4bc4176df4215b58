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
    unreconciled.find_blocking_finalizer,
    refusals.NAMESPACE_ENDS,
    unreconciled.find_unreadable_field,
    managers.find_unavailable_manager,
    managers.find_missing_leader,
    managers.find_inactive_manager,
    # Objects of a DisaggregatedSet are rejected.
    sets.find_scaler_conflict,
    sets.find_rejected_part,
    # Objects other than pods are rejected.
    nameconflicts.find_name_conflict,
    nameconflicts.find_rejected_object,
    contention.find_contested_field,
    # Groups cannot be gang scheduled, because objects are missing or a feature gate is disabled.
    featuregates.find_missing_prerequisite,
    featuregates.find_disabled_gate,
    # Pods are rejected. Specific causes are before general causes.
    podpolicies.find_impaired_policy,
    refusals.find_untrusted_webhook,
    refusals.find_unreachable_webhook,
    refusals.DENIED_BY_WEBHOOK,
    refusals.DENIED_BY_POLICY,
    refusals.find_exhausted_quota,
    refusals.QUOTA_INCOMPLETE,
    refusals.LIMIT_RANGE,
    refusals.POD_SECURITY,
    refusals.SECURITY_CONSTRAINTS,
    refusals.NO_SERVICE_ACCOUNT,
    refusals.NO_PRIORITY_CLASS,
    refusals.NO_RUNTIME_CLASS,
    refusals.NOT_ALLOWED,
    refusals.find_too_long_name,
    refusals.INVALID_TEMPLATE,
    refusals.REJECTED,
    unreconciled.find_unobserved_statefulset,
    missingpods.find_missing_pods,
    unreconciled.find_missing_revision,
    # Groups have no remaining restarts.
    starts.find_exhausted_group,
    hangs.find_missed_deadline,
    # The node is lost, or pods do not terminate.
    lostnodes.find_missing_node,
    lostnodes.find_unready_node,
    lostnodes.find_blocking_finalizer,
    lostnodes.find_overdue_termination,
    # Pods cannot be scheduled.
    schedulinggates.find_queued_pods,
    schedulinggates.find_gated_pods,
    schedulinggates.find_unknown_scheduler,
    schedulinggates.find_missing_scheduler,
    autoscalers.find_scale_up,
    scheduling.find_unplaceable_surge,
    volumes.NO_CLAIM,
    volumes.find_pending_claim,
    volumes.VOLUME_ELSEWHERE,
    deviceclaims.find_unmet_device_claim,
    scheduling.find_occupied_domains,
    schedulinggates.find_incomplete_gang,
    scheduling.ACCELERATORS,
    scheduling.MEMORY,
    scheduling.CPU,
    scheduling.STORAGE,
    scheduling.TOO_MANY_PODS,
    scheduling.find_unsatisfied_constraint,
    scheduling.PORTS,
    closednodes.find_missing_labels,
    closednodes.find_component_taints,
    closednodes.find_tainted_nodes,
    closednodes.find_cordoned_nodes,
    scheduling.UNSCHEDULABLE,
    # Pods cannot be started.
    kubeletrefusals.find_rejected_pod,
    evictedpods.find_evicted_pod,
    containerrefusals.NO_DEVICE,
    containerrefusals.INSECURE,
    containerrefusals.BAD_PATH,
    containerrefusals.BAD_FIELD,
    containers.NO_SANDBOX,
    images.BAD_CONFIG,
    volumes.find_attached_volume,
    volumes.find_failed_mount,
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
    hooks.find_failed_start_hook,
    injections.find_unready_injection,
    containers.find_out_of_memory,
    containers.find_failed_init_container,
    probekills.find_probe_kill,
    containers.find_crash,
    completions.find_unexpected_completion,
    hangs.find_in_place_restart,
    starts.find_backoff,
    # Pods are running without progress.
    hangs.find_hang,
    resizes.find_failed_resize,
    # The group does not form.
    scaledworkers.find_scaled_workers,
    starts.find_unresolvable_names,
    imagepulls.find_image_pull,
    pendingprobes.find_pending_probe,
    containers.find_false_readiness_gate,
    missingpods.find_terminating_workers,
    starts.find_waiting_workers,
    starts.find_unready_leader,
    containers.find_unready_rank,
    unreconciled.find_outdated_crd,
    rollouts.find_exceeded_deadline,
    rollouts.find_stuck_surge,
    rollouts.find_blocked_in_place_update,
    pendingmoves.find_blocked_move,
    # There is no error.
    rollouts.find_deletion,
    lostnodes.find_slow_termination,
    starts.find_recent_recreation,
    starts.find_starting_ranks,
    completions.find_remaining_ranks,
    rollouts.find_blocking_partition,
    rollouts.find_blocking_group,
    rollouts.find_ongoing_rollout,
    pendingmoves.find_pending_move,
    sets.find_ongoing_set_change,
)

OF_SETS: Final[tuple[Cause, ...]] = (
    unreconciled.find_blocking_finalizer,
    managers.find_unavailable_manager,
    managers.find_missing_leader,
    managers.find_inactive_manager,
    sets.find_scaler_conflict,
    sets.find_rejected_part,
    contention.find_contested_field,
    rollouts.find_deletion,
    sets.find_ongoing_set_change,
)
"""The causes for a DisaggregatedSet itself. All other causes apply to LeaderWorkerSets."""

NO_CAUSE: Final = Cause(
    code="LWS-E099",
    title="the cause is unknown",
    meaning="The object is not ready, and no known cause explains it.",
    remedy="Run `lws describe`, and read the log of a rank that is not ready.",
    find=lambda _: None,
    verdict=Verdict.UNKNOWN,
)

NOT_READ: Final = Cause(
    code="LWS-E119",
    title="the data for the diagnosis could not be read",
    meaning="The object is not ready. The data for the diagnosis could not be read, because a permission is missing or the API server did not respond.",
    remedy="Grant permission to list the kinds that the message shows, or run the command again.",
    find=lambda _: None,
    verdict=Verdict.UNREAD,
)

BY_CODE: Final = {cause.code: cause for cause in (*CATALOGUE, *OF_SETS, NO_CAUSE, NOT_READ)}
"""All causes that have a code. This includes causes without a function that finds them."""
