"""The numbers of all sets on the first page."""

from tests import builders

from leaderworkerset.dashboard.pages import totals
from leaderworkerset.dashboard.pages.page import PageFacts
from leaderworkerset.dashboard.picture import ToldSet
from leaderworkerset.diagnosis.finding import Diagnosis
from leaderworkerset.views.groups import view
from leaderworkerset.views.health.verdict import Verdict


def told(name: str, verdict: Verdict) -> ToldSet:
    lws = builders.leaderworkerset_object(replicas=2, size=1)
    return ToldSet(view(lws, []), Diagnosis(target=name, verdict=verdict, sentence=""))


def test_complete_sets_are_a_number_of_their_own() -> None:
    sets = [told("web", Verdict.HEALTHY), told("job", Verdict.COMPLETE), told("ill", Verdict.STUCK)]
    html = totals.piece(sets, [], PageFacts()).html
    assert "1 of 2 healthy, 1 complete" in html
    assert "0 of 4 ready" in html, "the groups of a complete set are not missing"
