"""The garbage collector: deletes objects without remaining owners, in the background or foreground, or orphans them.

`graph.py` holds the owner references of all objects, `verdict.py` decides on one object, `controller.py` watches every kind and writes.
"""
