"""Views of LeaderWorkerSets for people: groups, ranks, states and outcomes. Pure: objects in, values out."""
