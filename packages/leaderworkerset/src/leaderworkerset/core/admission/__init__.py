"""Defaulting and validation of LeaderWorkerSets, and mutation of their pods, at admission."""
