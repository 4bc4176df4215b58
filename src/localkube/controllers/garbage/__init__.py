"""The garbage collector: deletes what has no owner any more, in the background or foreground, or orphans it.

`graph.py` knows who owns whom, `verdict.py` decides on one object, `controller.py` watches every kind and acts.
"""
