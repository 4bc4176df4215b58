"""The API types: kinds, labels and CRDs. Pure: no I/O, no clock, no randomness."""
