"""Defines the data model of commands and pages: a cluster, its sets, and their groups and ranks. Pure values."""
