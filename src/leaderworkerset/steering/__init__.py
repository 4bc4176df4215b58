"""Steering rollouts: what verbs of `lws rollout` read and change, and what a change will do. Pure: objects in, values out."""
