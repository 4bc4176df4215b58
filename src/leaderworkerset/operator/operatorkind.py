"""The kind LeaderWorkerSetOperator as a value, and the registry of the operator's process."""

from contextlib import AbstractContextManager, nullcontext

from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Event
from leaderworkerset.controllers.caches import Caches
from leaderworkerset.controllers.instruments import KindMetrics, Meter
from leaderworkerset.install.declared import Declared
from leaderworkerset.kinds.kind import Definition, Kind
from leaderworkerset.kinds.registry import Registry
from leaderworkerset.operator import operatorcontroller
from leaderworkerset.operator.operand import OperatorPlace
from leaderworkerset.operator.operatorcrd import operator_crd
from leaderworkerset.operator.operatornames import OPERATORS, REPORTER
from leaderworkerset.operator.verbosity import Verbosity


def registry(declared: Declared, place: OperatorPlace, verbosity: Verbosity) -> Registry:
    """Return the kinds that an operator at this place serves; `declared` are the kinds of its operand."""
    kind = Kind(
        resource=OPERATORS,
        definition=Definition(operator_crd, _described),
        controllers=operatorcontroller.controllers(declared, place, verbosity),
        metrics=(build_metrics,),
    )
    return Registry((kind,), reporter=REPORTER)


def _described(_document: JSONObject) -> JSONObject:
    """Return the definition, which always has its descriptions."""
    return operator_crd()


def build_metrics(meter: Meter) -> KindMetrics:
    """Register the metric that names the build (R-OP-11)."""
    from prometheus_client import CollectorRegistry, Gauge

    from leaderworkerset.manager import buildinfo

    own = CollectorRegistry()
    names = ("major", "minor", "gitCommit", "gitVersion")
    gauge = Gauge("openshift_lws_operator_build_info", "The build of the operator.", names, registry=own)
    version = buildinfo.version()
    major, minor = version.removeprefix("v").split(".")[:2]
    gauge.labels(major, minor, buildinfo.commit(), version).set(1)
    meter.register(gauge)
    return _NothingCounted()


class _NothingCounted:
    """The metrics of a kind that counts neither events nor objects."""

    def recorded(self, event: Event) -> None:
        """Ignore the event."""

    def following(self, caches: Caches) -> AbstractContextManager[None]:  # noqa: ARG002 - the seam passes it
        """Follow nothing."""
        return nullcontext()
