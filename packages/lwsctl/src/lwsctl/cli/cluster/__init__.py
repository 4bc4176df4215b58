"""Connects to clusters, and manages the directories of local clusters."""
