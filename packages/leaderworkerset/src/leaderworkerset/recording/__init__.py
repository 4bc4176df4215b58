"""The flight recorder, which preserves group failures after the pods are deleted (docs/adr/0019)."""
