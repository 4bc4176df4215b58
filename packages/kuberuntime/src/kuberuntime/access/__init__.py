"""How to reach an API server: kubeconfig, service account, credentials, proxies, TLS."""
