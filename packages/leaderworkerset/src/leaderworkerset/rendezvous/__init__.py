"""Synchronizes the start of the ranks in a group. The command is `python -m leaderworkerset.rendezvous`.

It runs in users' pods, with only the standard library, and without permissions in the cluster. `rendezvous.sh` next to
this file does the same in images without Python.
"""
