"""Implements the admission of LeaderWorkerSets (defaulting and validation) and of their pods (mutation)."""
