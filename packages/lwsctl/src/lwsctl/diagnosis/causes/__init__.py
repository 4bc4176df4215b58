"""Contains the causes, with one module for each stage at which a group is stuck.

Each function returns a finding or None.
"""
