"""Volumes of claims: the path on this machine in the claim's persistent volume."""

from pathlib import Path

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.spec.podspec import SpecError


def prepare(name: str, claim: JSONObject | None, volume: JSONObject | None) -> Path:
    """Return the path of a claim's data; `volume` is the PersistentVolume it is bound to, if there is one."""
    if claim is None:
        raise SpecError(f'persistentvolumeclaim "{name}" not found')
    if meta.is_deleting(claim):
        raise SpecError(f'persistentvolumeclaim "{name}" is being deleted')
    if volume is None:
        raise SpecError(f'persistentvolumeclaim "{name}" is not bound to a volume yet')
    source = meta.spec(volume)
    path = (source.get("hostPath") or source.get("local") or {}).get("path")
    if not path:
        raise SpecError(f'persistentvolume "{meta.name(volume)}" has no path here; only hostPath and local volumes do')
    directory = Path(path)
    directory.mkdir(parents=True, exist_ok=True)
    return directory
