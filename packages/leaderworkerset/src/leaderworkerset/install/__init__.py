"""The installed objects as values, from pure builders for `lws install` and the manifests in `deploy/`."""
