"""The garbage collector: what nobody owns any more goes, in the background, first, or not at all as was asked.

`graph.py` knows who owns whom, `verdict.py` decides on one object, `controller.py` watches every kind and acts.
"""
