"""Lets the ranks of a group meet before their program starts: `python -m leaderworkerset.rendezvous`.

It runs in the pods of users: with the standard library only, and without permissions in the cluster. `rendezvous.sh`
next to this file does the same in images without Python.
"""
