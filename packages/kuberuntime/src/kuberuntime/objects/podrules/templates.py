"""Validates a pod template as written by a client. kube-apiserver validates the template in each workload."""

from collections.abc import Iterable, Iterator

from kuberuntime.objects.field import FieldError, not_supported
from kuberuntime.objects.gotypes import defaults
from kuberuntime.objects.gotypes.declarations import KUBERNETES
from kuberuntime.objects.gotypes.mismatch import GoTypeError
from kuberuntime.objects.gotypes.roundtrip import round_trip
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules import pod_defaults, pod_rules
from kuberuntime.objects.podrules.values import forbidden


def template_errors(template: JSONObject, path: str, claims: Iterable[str] = ()) -> list[FieldError]:
    """Return the errors of a template. `claims` contains the names of the workload's volume claim templates.

    A template with an invalid type has no errors in this function, because the schema rejects it.

    >>> container = {"name": "serve", "image": " org/server"}
    >>> [str(error) for error in template_errors({"spec": {"containers": [container]}}, "template")]
    ['template.spec.containers[0].image: Invalid value: " org/server": must not have leading or trailing whitespace']
    """
    try:
        written = round_trip(KUBERNETES, "PodTemplateSpec", template)
    except GoTypeError:
        return []
    defaults.fill(KUBERNETES, "PodTemplateSpec", written)
    pod_defaults.default_spec(written["spec"])
    own = {volume["name"] for volume in written["spec"].get("volumes") or ()}
    volumes = [{"name": name, "emptyDir": {}} for name in claims if name not in own]
    if volumes:
        written["spec"]["volumes"] = [*(written["spec"].get("volumes") or ()), *volumes]
    return [*pod_rules.validate_template(written, path), *workload_errors(written, path, "StatefulSet")]


def workload_errors(template: JSONObject, path: str, kind: str) -> Iterator[FieldError]:
    """Yield the errors of fields that are not supported in workloads that replace their pods."""
    spec = template["spec"]
    if spec["restartPolicy"] in {"OnFailure", "Never"}:
        yield not_supported(f"{path}.spec.restartPolicy", spec["restartPolicy"], ("Always",))
    if "activeDeadlineSeconds" in spec:
        yield forbidden(f"{path}.spec.activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported")
