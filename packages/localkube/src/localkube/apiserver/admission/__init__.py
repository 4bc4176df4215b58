"""Admission of writes: webhooks, priorities, namespaces and the pod quota."""
