"""Implements the launcher, a small process that creates pods from Linux namespaces and forks containers.

It is separate from the cluster process, and single-threaded. It has few imports, all of the standard library, so a fork
of it costs about half a millisecond and little memory. It also imports the modules that the kubelet shares with it:
`processes/safeopen.py`, `descriptors.py`, `kernelerrors.py` and `processtree.py`.
"""
