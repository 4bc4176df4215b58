"""Manages the volumes of pods, which are host directories that are mounted in containers."""
