"""Tests the dashboard in a real browser."""
