"""Embedded clusters of this machine: their options, their start, what they have; it imports `localkube`, and only late."""
