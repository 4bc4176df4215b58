"""Finds slow image pulls. Pure."""

from datetime import timedelta
from typing import Final

from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.ranks import is_placed
from lwsctl.model.events import pulls
from lwsctl.model.health import Verdict

BRIEF: Final = timedelta(seconds=10)
"""The maximum duration of image pulls that are not reported."""

PULL_PATIENCE: Final = timedelta(minutes=30)
"""The maximum duration of a normal pull. Inference server images can have tens of gigabytes."""


@cause(
    code="LWS-E109",
    title="an image is being pulled",
    meaning="The kubelet is pulling an image. The message shows the elapsed time, and the duration of the previous pull if known.",
    remedy="Wait. If pulls are slow, use a nearby registry, a smaller image, or nodes that have the image.",
    verdict=Verdict.PROGRESSING,
    patience=PULL_PATIENCE,
)
def find_image_pull(observed: Observed) -> Finding | None:
    """Find the oldest image pull that blocks a rank. After half an hour, the pull is considered stuck."""
    candidates = [
        (rank, pull)
        for rank in observed.ranks_at(is_placed)
        if (pull := observed.warnings.pull_of(observed.view.namespace, rank)) and observed.now - pull.since >= BRIEF
    ]
    if not candidates:
        return None
    rank, pull = min(candidates, key=lambda pair: pair[1].since)
    text = pulls.describe_pull(pull, rank.node, observed.now)
    is_late = observed.now - pull.since >= PULL_PATIENCE
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"pod {rank.pod} waits{ranks.others_suffix(len(candidates))}: {text}",
        evidence=(f"{rank.pod}: {rank.state}; no event reports that the pull finished",),
        verdict=Verdict.STUCK if is_late else None,
        steps=(
            f"check the disk and the network of node {rank.node}, and the registry"
            if is_late
            else "wait, or use a nearby registry, a smaller image, or nodes that have the image",
            f"{observed.commands.lws} nodes {rank.node}",
        ),
    )
