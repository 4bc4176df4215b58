"""Sets of fields that clients send: read, or refused, however odd."""

import pytest

from kuberuntime.manifests.nesting import MAX_DEPTH
from localkube.apiserver.patch import fieldsv1
from localkube.apiserver.patch.fieldsv1 import FieldSetError

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    "element",
    [
        "", "f", "ff:a", "k:", "k:[]", "k:{", "v:", "v:{", "i:x", "i:" + "9" * 30,
        'k:{"a":' + DEEP + "}", "v:" + DEEP, 'k:{"a":"\\ud800"}',
    ],
    ids=lambda element: element[:12],
)  # fmt: skip
def test_malformed_path_elements_are_refused(element: str) -> None:
    with pytest.raises(FieldSetError):
        fieldsv1.parse({element: {}})


def test_values_in_path_elements_may_be_as_deep_as_values_elsewhere() -> None:
    element = "v:" + "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert fieldsv1.parse({element: {}}) == {element: {}}
    with pytest.raises(FieldSetError, match="exceeded max depth"):
        fieldsv1.parse({f"v:[{element[2:]}]": {}})
