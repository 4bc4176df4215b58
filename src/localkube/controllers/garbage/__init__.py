"""The garbage collector: deletes what has no owner any more, in the background or foreground, or orphans it.

`graph.py` holds the owner references of all objects, `verdict.py` decides on one object, `controller.py` watches every kind and writes.
"""
