"""Defaults and validation of the built-in kinds, in the words of kube-apiserver."""
