"""Force-deletes pods that are stuck on lost nodes (`release-lost-pods-after`)."""
