"""The decisions: each takes one frozen observation and returns one plan. Pure: no I/O, no clock, no randomness."""
