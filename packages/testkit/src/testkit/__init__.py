"""Provides the code that tests of several packages share: virtual time, fakes, clusters and the plugin."""
