"""Notes on Services that match no pod concern only Services for the explained sets."""

import pytest
from tests import builders

from leaderworkerset.api import labels
from lwsctl.cli.commands.explain import is_meant

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "a"}]}}
SET = builders.leaderworkerset_object(template={"workerTemplate": TEMPLATE})


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({labels.NAME: "web"}, True),
        ({labels.NAME: "web", "role": "leadr"}, True),
        ({"app": "web", "role": "x"}, True),
        ({"app": "mail"}, False),
        ({labels.NAME: "other"}, False),
        ({}, False),
    ],
)
def test_service_matches_a_set_whose_label_it_selects(selector: dict[str, str], expected: bool) -> None:
    service = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": selector}}
    assert is_meant(service, SET) is expected
