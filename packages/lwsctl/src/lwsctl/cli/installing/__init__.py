"""The implementation of `lws install` and `lws uninstall`."""
