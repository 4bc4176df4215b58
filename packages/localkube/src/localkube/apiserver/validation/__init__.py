"""Defaults and validation of the built-in kinds, with the messages of kube-apiserver."""
