"""The Kubernetes API over SQLite: one file per verb."""
