"""Implements the garbage collector, which deletes dependents of deleted owners, or orphans them.

`graph.py` contains the owner references of all objects, `deletiondecision.py` decides on one object, and `controller.py` watches
all kinds and writes.
"""
