"""Tolerates in-place restarts of all containers of a pod (`in-place-restarts`)."""
