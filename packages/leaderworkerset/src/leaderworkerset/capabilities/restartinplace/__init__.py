"""Restarts of all containers of a pod in place are tolerated (`in-place-restarts`)."""
