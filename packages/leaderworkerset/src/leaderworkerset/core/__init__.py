"""The decisions: from one frozen observation to one plan. Pure: no I/O, no clock, no randomness."""
