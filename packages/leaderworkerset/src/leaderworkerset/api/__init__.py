"""The types of the API: kinds, labels, definitions. Pure: no I/O, no clock, no randomness."""
