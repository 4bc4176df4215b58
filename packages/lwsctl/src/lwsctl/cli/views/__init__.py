"""Output for people: tables, progress, live views, outcomes."""
