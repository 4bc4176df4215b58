"""Tests that a Deployment respects its limits and converges after any changes and with any pod states."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.localkube.controllers.deployment.model import Model, build_deployment, image_of, rolling, size_of
from tests.unit.localkube.controllers.objects import build_template

from kuberuntime.plan import Plan
from localkube.controllers.deployment import sizes

COUNTS = st.integers(0, 12)
BOUNDS = st.one_of(st.integers(0, 6), st.integers(0, 100).map("{}%".format))
ROLLING = st.tuples(BOUNDS, BOUNDS).filter(lambda pair: not {0, "0%"}.issuperset(pair)).map(lambda pair: rolling(*pair))
STRATEGIES = st.one_of(ROLLING, st.just({"type": "Recreate"}))
CHANGES = st.lists(
    st.one_of(
        st.fixed_dictionaries({"replicas": COUNTS}),
        st.fixed_dictionaries({"template": st.sampled_from(["v1", "v2", "v3"]).map(build_template)}),
        st.fixed_dictionaries({"paused": st.booleans()}),
        st.fixed_dictionaries({"strategy": STRATEGIES}),
    ),
    max_size=5,
)
SHARES = st.lists(st.integers(0, 12), min_size=1, max_size=12)


@given(COUNTS, STRATEGIES, CHANGES, SHARES)
def test_deployment_converges_to_the_current_template(
    replicas: int, strategy: Any, changes: Any, shares: list[int]
) -> None:
    model = Model(build_deployment(replicas=replicas, strategy=strategy))
    for change in changes:
        model.change(**change)
        for share in shares:
            model.step()
            model.run_pods(lambda _, share=share: share)
    model.change(paused=False)
    model.settle()
    wanted = [one for one in model.sets.values() if size_of(one)]
    assert sum(map(size_of, model.sets.values())) == size_of(model.deployment)
    assert len(wanted) <= 1
    assert model.plan() == Plan()
    assert model.condition("Progressing") == ("True", "NewReplicaSetAvailable")


@given(st.integers(1, 12), ROLLING, SHARES)
def test_rollout_respects_surge_and_availability(replicas: int, strategy: Any, shares: list[int]) -> None:
    model = Model(build_deployment(replicas=replicas, strategy=strategy))
    model.settle()
    model.change(template=build_template("v2"))
    surge, unavailable = sizes.rolling_limits(model.deployment)
    for share in sorted(shares):
        model.step()
        assert sum(map(size_of, model.sets.values())) <= replicas + surge
        (old, *new) = model.sets.values()
        kept = sizes.available_pods(old) + sum(map(sizes.available_pods, new))
        assert kept >= replicas - unavailable
        model.run_pods(lambda one, share=share: size_of(one) if image_of(one) == "v1" else share)
