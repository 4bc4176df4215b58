"""The flight recorder: what happened to groups that failed, kept when their pods are gone (docs/adr/0019)."""
