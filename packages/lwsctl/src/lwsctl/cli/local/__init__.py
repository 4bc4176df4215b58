"""Manages embedded clusters on this machine, with their options, start, and content.

`localkube` is imported here, as late as possible.
"""
