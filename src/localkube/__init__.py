"""A one-machine cluster: API server, controllers and kubelet that run manifests as local processes."""
