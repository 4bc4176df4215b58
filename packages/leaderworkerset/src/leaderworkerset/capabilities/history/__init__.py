"""Retains unused revisions, so that users can list and restore them (`revision-history-limit`)."""
