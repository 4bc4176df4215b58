"""Schedules recreated groups to their previous nodes if possible (`stay-on-nodes`)."""
