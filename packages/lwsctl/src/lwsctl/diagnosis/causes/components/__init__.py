"""Finds causes that other cluster components report, such as autoscalers, kubelets, and sidecar injectors. Pure."""
