"""Implements `lws install` and `lws uninstall`."""
