"""The store of objects at all retained revisions, with change notifications."""
