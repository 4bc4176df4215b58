"""Causes that other components of a cluster report: autoscalers, kubelets, storage drivers, injectors of sidecars. Pure."""
