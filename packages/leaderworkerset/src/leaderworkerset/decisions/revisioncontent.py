"""Exports the content and order of LeaderWorkerSet revisions, including previous revisions."""

from leaderworkerset.capabilities.history.revisionhistory import selector as history_selector
from leaderworkerset.core.leaderworkerset.previousrevisions import (
    RevisionEntry,
    current_entry,
    find_entry,
    previous_entry,
    revision_content,
)
from leaderworkerset.core.leaderworkerset.previousrevisions import entries as revision_entries
from leaderworkerset.core.leaderworkerset.revisions import COVERED as COVERED_BY_REVISIONS
from leaderworkerset.core.leaderworkerset.revisions import UnreadableRevisionError, find_revision, owned_revisions
from leaderworkerset.core.leaderworkerset.revisions import build_content as build_revision_content
from leaderworkerset.core.leaderworkerset.revisions import build_data as build_revision_data
from leaderworkerset.core.leaderworkerset.revisions import content_hash as revision_hash
from leaderworkerset.core.leaderworkerset.revisions import restore as restore_revision
