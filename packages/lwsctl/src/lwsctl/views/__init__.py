"""Views of LeaderWorkerSets for users: groups, ranks, states and outcomes. Pure: objects in, values out."""
