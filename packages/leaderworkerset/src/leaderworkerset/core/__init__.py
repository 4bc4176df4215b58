"""Converts frozen observations to plans. The functions are pure, without I/O, clock or randomness."""
