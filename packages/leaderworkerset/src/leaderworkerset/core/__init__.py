"""Converts frozen observations to plans. Pure: no I/O, no clock, no randomness."""
