"""The launcher: a small process that creates pods from Linux namespaces and forks their containers.

It is separate from the cluster process, and single-threaded. It has few imports, all of the standard library, so a fork
of it costs about half a millisecond and little memory. Of the rest of the distribution it imports what the kubelet shares
with it: `processes/beneath.py`, `descriptors.py`, `kernelerrors.py` and `processtree.py`.
"""
