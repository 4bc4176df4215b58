"""Defines the API types, including kinds, labels and CRDs.

The functions are pure, without I/O, clock or randomness.
"""
