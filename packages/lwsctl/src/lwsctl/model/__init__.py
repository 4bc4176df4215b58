"""The read model of commands and pages: a cluster, its sets, their groups and ranks. Pure values."""
