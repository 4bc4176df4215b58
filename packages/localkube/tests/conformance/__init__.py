"""Defines this directory as a package, so that pytest stops the cluster after the last test."""
