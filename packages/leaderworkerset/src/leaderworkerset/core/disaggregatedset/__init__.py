"""Decisions about DisaggregatedSets: roles that are rolled out together (docs/reference/contract-disaggregatedset.md)."""
