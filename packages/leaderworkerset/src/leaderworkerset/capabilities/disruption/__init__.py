"""Uses disruption budgets to limit evictions to a number of groups (docs/adr/0022-disruption-budgets.md)."""
