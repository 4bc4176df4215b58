"""Tests the built-in gate on both clusters."""
