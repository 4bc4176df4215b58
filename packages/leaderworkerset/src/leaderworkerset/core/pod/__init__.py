"""Decisions about one pod of a group: its worker StatefulSet, services and the recreation of its group."""
