"""The launcher: a small process that creates pods from Linux namespaces and forks their containers.

It is separate from the cluster process, and single-threaded. It has few imports, all of the standard library, so a fork
of it costs about half a millisecond and little memory. Its modules import each other relatively, because the
launcher process loads this package by its directory, without the rest of the distribution and what that would import.
"""
