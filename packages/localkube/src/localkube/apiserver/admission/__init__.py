"""Admission of writes: webhooks, priorities, namespaces, pod quota."""
