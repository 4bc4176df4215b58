"""Disruption budgets in groups: the groups that may be evicted now (docs/adr/0022-disruption-budgets.md)."""
