"""Parses the options for simulated nodes, except labels (`labeltemplate.py`): taints and capacity.

In: the values of `--node-taint` and `--node-capacity`. Out: values for `nodes.NodeSettings`, or a `ValueError` that
names the invalid value and says what to write.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kuberuntime.objects import names, quantity
from kuberuntime.objects.meta import JSONObject
from localkube.controllers.nodes.labeltemplate import LabelTemplate, parse_label

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")

CAPACITY: Final = {"cpu": "1k", "memory": "4Ti", "ephemeral-storage": "100Ti", "pods": "10k"}
"""The default capacity of a node; other resources have a domain in their names."""


@dataclass(frozen=True, slots=True)
class TaintTemplate:
    """A taint whose value may depend on the number of the node."""

    label: LabelTemplate
    effect: str

    def taint(self, index: int) -> JSONObject:
        """Return the taint of node number `index`."""
        value = self.label.value(index)
        return {"key": self.label.key, "effect": self.effect} | ({"value": value} if value else {})


def parse_taint(text: str) -> TaintTemplate:
    """Read `key=value:Effect` or `key:Effect`, as kubectl writes taints; the value may be a template.

    >>> parse_taint("pool=p{i//2}:NoSchedule").taint(3)
    {'key': 'pool', 'effect': 'NoSchedule', 'value': 'p1'}
    """
    head, separator, effect = text.rpartition(":")
    if not separator or effect not in EFFECTS:
        form = f"must have the form KEY=VALUE:EFFECT with an effect of {', '.join(EFFECTS)}"
        raise ValueError(f"Invalid value: {text!r}: {form}")
    return TaintTemplate(parse_label(head if "=" in head else f"{head}="), effect)


def parse_capacity(words: Iterable[str]) -> dict[str, str]:
    """Read `resource=amount`, several of them joined by commas or given one by one.

    >>> parse_capacity(["cpu=8,memory=32Gi", "google.com/tpu=4"])
    {'cpu': '8', 'memory': '32Gi', 'google.com/tpu': '4'}
    """
    capacity: dict[str, str] = {}
    for text in words:
        for part in text.split(","):
            name, separator, amount = part.partition("=")
            failure = _problem(name, amount) if separator else "must have the form RESOURCE=AMOUNT[,RESOURCE=AMOUNT…]"
            if failure or name in capacity:
                raise ValueError(f"Invalid value: {text!r}: {failure or f'{name} is given twice; leave one out'}")
            capacity[name] = amount
    return capacity


def _problem(name: str, amount: str) -> str:
    """Return the error in the capacity of one resource, empty if it is valid."""
    for failure in names.qualified_name(name):
        return f"{name!r} names no resource: {failure}"
    if not ("/" in name or name in CAPACITY or name.startswith("hugepages-")):
        return f"there is no resource {name!r}: want {', '.join(CAPACITY)}, hugepages-…, or a name with a domain"
    try:
        parsed = quantity.parse(amount)
    except quantity.QuantityError as error:
        return f"{name}: {error}"
    if parsed < quantity.ZERO:
        return f"{name}: must be greater than or equal to 0"
    if parsed.fraction().denominator != 1 and ("/" in name or name == "pods"):
        return f"{name}: must be a whole number"
    return ""
