"""Embedded clusters on this machine: their options, start, and content.

`localkube` is imported here, as late as possible.
"""
