"""The garbage collector, which deletes objects of deleted owners in the background or foreground, or orphans them.

`graph.py` contains the owner references of all objects, `deletiondecision.py` decides on one object, and `controller.py` watches
all kinds and writes.
"""
