"""Synchronizes the start of the ranks in a group: `python -m leaderworkerset.rendezvous`.

It runs in users' pods, with only the standard library, and without permissions in the cluster. `rendezvous.sh` next to
this file does the same in images without Python.
"""
