"""Tests that the scenario of each cause in the catalogue has its code and the recorded message."""

import importlib
import pkgutil
import re
from datetime import timedelta
from pathlib import Path

from msgspec.structs import replace
from testkit.repository import ROOT
from tests.explanations.builders import waiting
from tests.explanations.golden import FOLDER, text_of
from tests.explanations.remedies import TRIED
from tests.explanations.scenarios import SCENARIOS
from tests.typed import read

from lwsctl.diagnosis import causes
from lwsctl.diagnosis.catalogue import CATALOGUE, NO_CAUSE, NOT_READ, OF_SETS
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.diagnosis.finding import Cause
from lwsctl.diagnosis.observed import Commands
from lwsctl.model.health import Verdict
from lwsctl.views.selection import Selection

CAUSES = ROOT / "docs" / "reference" / "causes.md"
CODES = [cause.code for cause in CATALOGUE]


def test_codes_are_unique_and_well_formed() -> None:
    assert len(set(CODES)) == len(CODES) >= 40
    assert all(re.fullmatch(r"LWS-E\d{3}", code) for code in CODES)
    assert not {NO_CAUSE.code, NOT_READ.code} & {*CODES}


def test_every_declared_cause_is_in_the_catalogue() -> None:
    modules = [
        importlib.import_module(one.name) for one in pkgutil.walk_packages(causes.__path__, f"{causes.__name__}.")
    ]
    declared = {cause for module in modules for cause in vars(module).values() if isinstance(cause, Cause)}
    missing = declared - {*CATALOGUE}
    assert not missing, f"put it into CATALOGUE (diagnosis/catalogue.py): {[cause.code for cause in missing]}"
    assert declared == {*CATALOGUE} >= {*OF_SETS}


def test_every_cause_has_a_scenario_and_a_text() -> None:
    assert set(SCENARIOS) == {*CODES, NO_CAUSE.code, NOT_READ.code}
    assert {path.stem for path in Path(FOLDER).glob("*.txt")} == set(SCENARIOS)


def test_every_scenario_is_found_by_its_code() -> None:
    assert [code for code in SCENARIOS if diagnose(SCENARIOS[code], Selection("web")).code != code] == []


def test_every_reason_of_the_embedded_kubelet_has_a_cause() -> None:
    sources = (ROOT / "packages/localkube/src/localkube/kubelet/container").glob("*.py")
    reasons = {name for file in sources for name in re.findall(r'UnrunnableError\(\s*"(\w+)"', file.read_text())}
    assert reasons >= {"PortConflict", "ProgramNotFound"}
    message = "port 8000 is in use by pod default/web-1. Set the command of the container"
    found = {reason: diagnose(waiting(reason, message), Selection("web")).code for reason in reasons}
    assert [reason for reason, code in found.items() if code == NO_CAUSE.code] == []
    assert found["PortConflict"] == "LWS-E067"


def test_texts_equal_the_recorded_ones() -> None:
    kept = {code: (FOLDER / f"{code}.txt").read_text() for code in SCENARIOS}
    assert {code: text_of(code) for code in SCENARIOS} == kept, "python -m tests.explanations writes them anew"


def test_verdict_of_a_scenario_equals_the_reference() -> None:
    """A group that was just created may be progressing. The same group is stuck later."""
    said = dict(re.findall(r"^## (.*)\n\n\*\*.*\*\* \((.*)\)$", CAUSES.read_text(), re.MULTILINE))
    for code in CODES:
        early, _, later_word = said[code].partition(", then ")
        late = later_word or early
        situation = SCENARIOS[code]
        assert diagnose(situation, Selection("web")).verdict in {early, late}, code
        later = diagnose(replace(situation, now=situation.now + timedelta(hours=1)), Selection("web"))
        assert later.code != code or later.verdict == late


KUBERNETES_ONLY = {"LWS-E010", "LWS-E022", "LWS-E030"}
"""Tests causes in ValidatingAdmissionPolicies, LimitRanges and Kueue, which occur only on Kubernetes."""


def test_local_cluster_gets_next_steps_without_kubectl() -> None:
    for code in {*SCENARIOS} - KUBERNETES_ONLY:
        told = diagnose(replace(SCENARIOS[code], commands=Commands(kubectl="", lws="lws --local")), Selection("web"))
        assert told.steps, code
        assert "kubectl" not in " ".join(told.steps)


def test_commands_in_next_steps_are_valid() -> None:
    steps = {step for situation in SCENARIOS.values() for step in diagnose(situation, Selection("web")).steps}
    for line in {line for step in steps for line in re.findall(r"\b(?<!annotate )lws .+", step)}:
        read(line.replace("=N", "=1"))


def test_titles_meanings_and_remedies_are_sentences() -> None:
    for cause in CATALOGUE:
        assert cause.title[0].islower() or cause.title.startswith(("Kueue", "Pod"))
        assert not cause.title.endswith(".")
        assert cause.meaning.endswith("."), cause.code
        assert cause.remedy.endswith("."), cause.code


def test_every_remedy_is_tried_or_needs_a_person() -> None:
    """A cause that only requires waiting has no remedy to apply."""
    patient = {cause.code for cause in CATALOGUE if cause.verdict not in {Verdict.STUCK, Verdict.CRASHING}}
    of_people = {cause.code for cause in CATALOGUE if cause.person}
    assert {*CODES} >= TRIED
    assert sorted(TRIED & of_people) == [], "no person is needed where a test applies the remedy"
    untried = {*CODES} - TRIED - of_people - patient
    assert sorted(untried) == [], "apply their remedies in tests/integration/lwsctl/test_remedies.py, or name a person"
