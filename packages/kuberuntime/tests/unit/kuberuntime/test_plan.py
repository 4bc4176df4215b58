"""Tests that composite actions are flattened, and that single actions are removed from them."""

from kuberuntime.objects.meta import ObjectKey, ResourceVersion
from kuberuntime.objects.resources import CONFIG_MAPS
from kuberuntime.plan import Concurrently, Delete, Emit, Finally, PutStatus, flatten, without

STATUS = PutStatus(resource=CONFIG_MAPS, object={}, resource_version=ResourceVersion("1"))
ONE, TWO, THREE = (Delete(resource=CONFIG_MAPS, key=ObjectKey("default", name)) for name in "abc")
TELL = Emit(events=())


def test_nested_actions_are_flattened_in_order() -> None:
    inner = Concurrently(sequences=((ONE, TWO), (Finally(actions=(THREE,), after=(STATUS,)),)))

    assert list(flatten((TELL, inner))) == [TELL, ONE, TWO, THREE, STATUS]


def test_removing_an_action_keeps_later_actions() -> None:
    both = Finally(actions=(ONE, STATUS), after=(TWO,))

    assert without((TELL, both, THREE), STATUS) == (TELL, Finally(actions=(ONE,), after=(TWO,)), THREE)
    assert without((Finally(actions=(STATUS,), after=(TWO, THREE)),), STATUS) == (TWO, THREE)
    assert without((ONE, STATUS), STATUS) == (ONE,)
    assert without((ONE, both), TWO) == (ONE, both)
