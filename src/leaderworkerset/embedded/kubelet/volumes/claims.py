"""Persistent volume claims: one directory per claim, which outlives the pods, or the path its volume names."""

from pathlib import Path

from leaderworkerset.api import meta
from leaderworkerset.api.meta import JSONObject
from leaderworkerset.embedded.kubelet.podspec import SpecError


def prepare(claim: JSONObject | None, volume: JSONObject | None, name: str, directory: Path) -> Path:
    """Return the claim's directory; `volume` is the PersistentVolume it is bound to, where there is one."""
    if claim is None:
        raise SpecError(f'persistentvolumeclaim "{name}" not found')
    if meta.is_deleting(claim):
        raise SpecError(f'persistentvolumeclaim "{name}" is being deleted')
    source = meta.spec(volume or {})
    own = (source.get("hostPath") or source.get("local") or {}).get("path")
    path = Path(own) if own else directory / meta.uid(claim)
    path.mkdir(parents=True, exist_ok=True)
    return path
