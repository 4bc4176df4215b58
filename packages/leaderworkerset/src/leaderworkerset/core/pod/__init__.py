"""Decisions about one group: its worker StatefulSet, Services and recreation."""
