"""Causes that other cluster components report: autoscalers, kubelets, storage drivers and sidecar injectors. Pure."""
