"""The launcher: a small process that makes pods out of Linux namespaces and forks their containers.

It runs apart from the cluster process, single-threaded, on the standard library alone and with few imports, so that a
fork of it costs about half a millisecond and little memory. Its modules import each other relatively, because the
launcher process loads this package by its directory, without the rest of the distribution and what that would import.
"""
