"""The words: kinds, labels, value rules and plans as values. Pure: no I/O, no clock, no randomness."""
