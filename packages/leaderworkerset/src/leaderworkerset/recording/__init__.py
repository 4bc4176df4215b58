"""The flight recorder, which keeps the failures of groups after the deletion of their pods (docs/adr/0019)."""
