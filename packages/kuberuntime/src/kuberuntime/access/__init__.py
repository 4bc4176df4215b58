"""Configures access to an API server from a kubeconfig or from a service account."""
