"""Admits writes, with webhooks, priorities, namespace checks and the pod quota."""
