"""Implements commands that show, control and predict rollouts."""
