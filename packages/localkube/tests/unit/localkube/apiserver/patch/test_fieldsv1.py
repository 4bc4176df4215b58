"""Tests that field sets from clients are either parsed or rejected."""

import pytest

from kuberuntime.manifests.nesting import MAX_DEPTH
from localkube.apiserver.patch import fieldset
from localkube.apiserver.patch.fieldset import FieldSetError

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    "element",
    [
        "", "f", "ff:a", "k:", "k:[]", "k:{", "v:", "v:{", "i:x", "i:" + "9" * 30,
        'k:{"a":' + DEEP + "}", "v:" + DEEP, 'k:{"a":"\\ud800"}',
    ],
    ids=lambda element: element[:12],
)  # fmt: skip
def test_malformed_path_elements_are_rejected(element: str) -> None:
    with pytest.raises(FieldSetError):
        fieldset.parse({element: {}})


def test_values_in_path_elements_have_the_usual_depth_limit() -> None:
    element = "v:" + "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert fieldset.parse({element: {}}) == {element: {}}
    with pytest.raises(FieldSetError, match="exceeded max depth"):
        fieldset.parse({f"v:[{element[2:]}]": {}})
