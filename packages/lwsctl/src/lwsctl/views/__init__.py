"""Converts API objects to views of LeaderWorkerSets for users, with groups, ranks, states and outcomes. Pure."""
