"""Tests gang schedulers on both clusters."""
