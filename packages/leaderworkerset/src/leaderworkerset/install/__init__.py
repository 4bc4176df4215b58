"""The objects of an installation as values: pure builders, used by `lws install` and by the manifests in `deploy/`."""
