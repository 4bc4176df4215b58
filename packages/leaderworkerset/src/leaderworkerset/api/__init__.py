"""The API types, including kinds, labels and CRDs. Pure: no I/O, no clock, no randomness."""
