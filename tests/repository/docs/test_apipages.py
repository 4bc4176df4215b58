"""Tests that the Python reference pages match the docstrings and signatures of all public objects."""

import ast

import pytest
from docs import apipages

SOURCE = '''
class Shop(Base):
    """Sells."""

    open: bool = True
    """Whether it is."""
    _till: int = 0

    @overload
    def sell(self, what: int) -> int: ...
    def sell(self, what: int | str, *, fast: bool = False) -> int:
        """Sell one.

        >>> 1
        1

        Or more.
        """

    @property
    def size(self) -> int:
        """Return it."""

    def _count(self) -> None: ...

@asynccontextmanager
async def visit(shop: Shop) -> AsyncIterator[int]:
    """Go in."""
'''


def test_definition_is_described_with_signature_and_examples() -> None:
    shop, visit = (one for one in ast.parse(SOURCE).body if isinstance(one, apipages.Definition))
    assert "\n".join(apipages.described(shop)).split("\n\n") == [
        "### Shop",
        "```python\nclass Shop(Base)\n```",
        "Sells.",
        "- `open: bool = True`: Whether it is.",
        "#### Shop.sell",
        "```python\ndef sell(what: int | str, *, fast: bool=False) -> int\n```",
        "Sell one.",
        "```pycon\n>>> 1\n1\n```",
        "Or more.",
        "#### Shop.size",
        "```python\nsize: int\n```",
        "Return it.\n",
    ]
    assert "async with visit(shop: Shop) as int" in apipages.described(visit)


@pytest.mark.parametrize("api", apipages.APIS.values(), ids=lambda api: api.modules[0])
def test_every_public_object_of_a_page_has_a_docstring(api: apipages.Api) -> None:
    for module in api.modules:
        found = [*apipages.public(module, apipages.parsed(module))]
        assert found, module
        assert [one.name for one in found if not ast.get_docstring(one)] == []


def test_package_is_described_by_its_all_list() -> None:
    import lwsctl.client

    tree = apipages.parsed("lwsctl.client")
    assert [one.name for one in apipages.public("lwsctl.client", tree)] == lwsctl.client.__all__
