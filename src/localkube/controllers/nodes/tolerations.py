"""Which taints a pod tolerates, as the scheduler and the taint eviction read it."""

from dataclasses import dataclass

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject


@dataclass(frozen=True, slots=True)
class Toleration:
    """One toleration; empty parts match anything. `seconds` is how long NoExecute is tolerated; None: for ever."""

    key: str
    operator: str
    value: str
    effect: str
    seconds: float | None = None

    def tolerates(self, taint: JSONObject) -> bool:
        """Return whether the taint does not keep the pod away."""
        if self.effect and self.effect != taint.get("effect"):
            return False
        if self.key and self.key != taint.get("key"):
            return False
        return self.operator == "Exists" or (bool(self.key) and self.value == (taint.get("value") or ""))


def read_tolerations(pod: JSONObject) -> tuple[Toleration, ...]:
    """Return the tolerations of a pod."""
    return tuple(map(_read, meta.spec(pod).get("tolerations") or []))


def _read(entry: JSONObject) -> Toleration:
    return Toleration(
        entry.get("key") or "",
        entry.get("operator") or "Equal",
        entry.get("value") or "",
        entry.get("effect") or "",
        entry.get("tolerationSeconds"),
    )
