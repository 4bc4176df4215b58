"""How the ranks of a group meet before their program starts: `python -m leaderworkerset.rendezvous`, and the same for shells.

It runs in the pods of users: from the standard library alone, without rights in the cluster. `rendezvous.sh` beside this
file does the same with what images without Python have.
"""
