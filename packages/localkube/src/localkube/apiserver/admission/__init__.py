"""Admission of writes: webhooks, priorities, namespaces, the quota of pods."""
