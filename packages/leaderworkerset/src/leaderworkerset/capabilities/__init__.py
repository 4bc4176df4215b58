"""Implements capabilities beyond the upstream contract.

Each capability has a directory, and a row in the table in `enabled.py`.
"""
