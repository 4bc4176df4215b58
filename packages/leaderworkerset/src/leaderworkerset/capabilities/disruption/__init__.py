"""Disruption budgets in units of groups: which groups may be evicted now (docs/adr/0022-disruption-budgets.md)."""
