"""What people read of LeaderWorkerSets: groups, ranks, states and outcomes. Pure: objects in, values out."""
