"""Unused revisions are kept, so that users can list and restore them (`revision-history-limit`)."""
