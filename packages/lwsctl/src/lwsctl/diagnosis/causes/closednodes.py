"""Finds pods that nodes reject because of labels, taints or cordons, based on the scheduler's message. Pure."""

import re
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import meta, placement
from kuberuntime.objects.meta import JSONObject
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.causes.components import nodetaints
from lwsctl.diagnosis.causes.components.autoscalers import with_autoscaler_note
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.patterns import READ, StageMessage
from lwsctl.diagnosis.ranks import is_unscheduled
from lwsctl.model.diagnosis import Person
from lwsctl.model.groups import Rank
from lwsctl.views.wording import join_names

TAINTS_NAMED: Final = 5
NODES_NAMED: Final = 5

NO_LABELS: Final = StageMessage(
    is_unscheduled,
    r"didn't match Pod's node affinity/selector|didn't match node selector",
    "no free node has the labels that pod {pod} requires{others}",
    (
        "{anywhere} nodes --show-labels",
        "{lws} get {place} -o jsonpath='{{.spec.nodeSelector}} {{.spec.affinity}}'",
    ),
)


def node_selector(rank: Rank) -> dict[str, str]:
    """Return the node labels that a pod's nodeSelector requires."""
    return meta.spec(rank.object or {}).get("nodeSelector") or {}


def has_labels(node: JSONObject, selector: dict[str, str]) -> bool:
    """Return whether a node has all given labels."""
    return selector.items() <= meta.labels(node).items()


@cause(
    code="LWS-E040",
    title="no node has the required labels",
    meaning="The nodeSelector or node affinity of the pod template requires labels that no available node has.",
    remedy="Add the required labels to nodes, add nodes with the labels, or correct the selector.",
)
@with_autoscaler_note
def find_missing_labels(observed: Observed) -> Finding | None:
    """Find pods that require labels that no schedulable node has.

    For a tainted or cordoned node, the taint or cordon is the cause.
    """
    for rank in observed.ranks_at(is_unscheduled):
        selector = node_selector(rank)
        suits = any(has_labels(node, selector) for node in observed.nodes.values())
        if selector and suits and re.search(r"untolerated taint|were unschedulable", rank.why[:READ]):
            return None
    finding = NO_LABELS(observed)
    if finding is None:
        return None
    missing_labels = node_selector(ranks.find_rank(observed, finding.subject))
    if not missing_labels:
        return finding
    label_text = ",".join(f"{key}={value}" for key, value in sorted(missing_labels.items()))
    step = f"label nodes with {label_text}, or correct nodeSelector in {observed.template}"
    return replace(finding, sentence=f"{finding.sentence}: {label_text}", steps=(step, *finding.steps))


NO_NODES_OPEN: Final = StageMessage(
    is_unscheduled,
    r"were unschedulable|no nodes available",
    "no suitable node is schedulable for {pod}{others}",
    ("{anywhere} nodes",),
)


@cause(
    code="LWS-E043",
    title="no suitable node is schedulable",
    meaning="The cluster has no nodes, or all suitable nodes are cordoned (unschedulable).",
    remedy="Add nodes, or run `kubectl uncordon NODE` to make a node schedulable.",
)
@with_autoscaler_note
def find_cordoned_nodes(observed: Observed) -> Finding | None:
    """Find pods that all nodes reject, and cordoned nodes with the labels that the first pod requires."""
    finding = NO_NODES_OPEN(observed)
    rank = next(
        (rank for rank in observed.ranks_at(is_unscheduled) if finding and rank.pod == finding.subject.name), None
    )
    selector = node_selector(rank) if rank else {}
    names = [
        name
        for name, node in sorted(observed.nodes.items())
        if meta.spec(node).get("unschedulable") and has_labels(node, selector)
    ]
    if finding is None or not names:
        return finding
    evidence = (*finding.evidence, f"cordoned: {join_names(names, NODES_NAMED)}")
    uncordon = f"to use these nodes again: {observed.plain_kubectl} uncordon {' '.join(names[:NODES_NAMED])}"
    return replace(finding, evidence=evidence, steps=(uncordon, f"{observed.commands.lws} nodes"))


@cause(
    code="LWS-E118",
    title="suitable nodes have a temporary taint",
    meaning="Suitable nodes have a taint that Kubernetes, an autoscaler or `lws move` added. The component that added the taint removes it automatically.",
    person=Person.ADMINISTRATOR,
    remedy="Do not remove or tolerate the taint. Repair the node, or wait until the taint is removed.",
)
@with_autoscaler_note
def find_component_taints(observed: Observed) -> Finding | None:
    """Find pods that only component taints prevent from using a node, and describe these taints."""
    rank = next(iter(_repelled_ranks(observed)), None)
    if rank is None:
        return None
    closed = {
        name: [entry for taint in taints if (entry := nodetaints.find_component_taint(taint))]
        for name, taints in _taints(observed, rank).items()
        if taints and all(map(nodetaints.find_component_taint, taints))
    }
    if not closed:
        return None
    texts = [nodetaints.describe_taint(entries[0], observed.nodes[name]) for name, entries in closed.items()]
    others = ranks.others_suffix(len(_repelled_ranks(observed)))
    steps = [entries[0].next_step.format(node=name, kubectl=observed.plain_kubectl) for name, entries in closed.items()]
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"pod {rank.pod} waits{others}: {join_names(texts, NODES_NAMED)}",
        evidence=(f"{rank.pod}: {ranks.quote_message(rank.why)}",),
        steps=(*dict.fromkeys(steps[:NODES_NAMED]), f"{observed.commands.lws} nodes"),
    )


def _repelled_ranks(observed: Observed) -> list[Rank]:
    return [rank for rank in observed.ranks_at(is_unscheduled) if "untolerated taint" in rank.why]


def _taints(observed: Observed, rank: Rank) -> dict[str, list[JSONObject]]:
    """Return the taints that repel a pod for each node that has the required labels."""
    selector = node_selector(rank)
    return {name: untolerated_taints(rank, node) for name, node in observed.nodes.items() if has_labels(node, selector)}


@cause(
    code="LWS-E039",
    title="nodes have taints that the pods do not tolerate",
    meaning="Nodes have taints that the pods do not tolerate.",
    remedy="Add a toleration to the pod template, or remove the taint from the nodes that are intended for the pods.",
)
@with_autoscaler_note
def find_tainted_nodes(observed: Observed) -> Finding | None:
    """Find pods that are repelled by taints that users set.

    The finding lists taints of nodes with the required labels.
    """
    repelled_ranks = _repelled_ranks(observed)
    if not repelled_ranks:
        return None
    rank = repelled_ranks[0]
    taints = [taint for own in _taints(observed, rank).values() for taint in own]
    taint_texts = dict.fromkeys(taint_text(taint) for taint in taints if nodetaints.find_component_taint(taint) is None)
    taint_list = f": {', '.join(list(taint_texts)[:TAINTS_NAMED])}" if taint_texts else ""
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"nodes have taints that pod {rank.pod} does not tolerate{ranks.others_suffix(len(repelled_ranks))}{taint_list}",
        evidence=(f"{rank.pod}: {ranks.quote_message(rank.why)}",),
        steps=(
            f"add a toleration to {observed.template}, or remove the taint from the nodes intended for it",
            f"{observed.plain_kubectl} taint nodes NODE KEY-",
        ),
    )


def untolerated_taints(rank: Rank, node: JSONObject) -> list[JSONObject]:
    """Return the node taints that repel a pod."""
    tolerations = placement.read_tolerations(meta.spec(rank.object or {}))
    taints = [taint for taint in meta.spec(node).get("taints") or [] if taint.get("effect") in placement.REPELLING]
    return [taint for taint in taints if not placement.tolerate_all(tolerations, [taint])]


def taint_text(taint: JSONObject) -> str:
    """Format a taint in the form KEY=VALUE:EFFECT."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"
