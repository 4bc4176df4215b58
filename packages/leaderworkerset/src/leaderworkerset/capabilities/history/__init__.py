"""Revisions that no group uses any more are kept to be shown and restored (`revision-history-limit`)."""
