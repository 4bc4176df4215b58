"""The parts of `lws install` and `lws uninstall`."""
