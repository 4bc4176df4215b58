"""Reconciles the worker StatefulSet, Services and recreation of one group."""
