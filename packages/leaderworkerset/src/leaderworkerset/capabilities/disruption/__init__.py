"""Limits evictions to a number of groups with disruption budgets (docs/adr/0022-disruption-budgets.md)."""
