"""The store of objects at all retained revisions, with notifications of changes."""
