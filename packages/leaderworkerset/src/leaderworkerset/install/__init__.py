"""Builds the installed objects as values, for `lws install` and for the manifests in `deploy/`.

The functions are pure.
"""
