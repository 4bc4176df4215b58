"""Implements the simulated nodes, their taints, and the eviction of pods."""
