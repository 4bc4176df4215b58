"""Views of LeaderWorkerSets for users, with groups, ranks, states and outcomes, built from API objects. Pure."""
