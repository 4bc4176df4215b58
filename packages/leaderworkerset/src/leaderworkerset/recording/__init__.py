"""The flight recorder: the failures of groups, kept after the deletion of their pods (docs/adr/0019)."""
