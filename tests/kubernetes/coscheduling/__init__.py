"""Tests gang scheduling with the real coscheduling plugin, if its scheduler was built."""
