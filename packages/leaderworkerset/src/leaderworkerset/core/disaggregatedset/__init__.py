"""Reconciles DisaggregatedSets, whose roles are rolled out together (docs/reference/contract-disaggregatedset.md)."""
