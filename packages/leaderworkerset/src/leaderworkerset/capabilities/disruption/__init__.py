"""Disruption budgets that are counted in groups: which group may be evicted now (docs/adr/0022-disruption-budgets.md)."""
