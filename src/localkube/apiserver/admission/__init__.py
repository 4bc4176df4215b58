"""Admission, before a write: webhooks, priorities, namespaces."""
