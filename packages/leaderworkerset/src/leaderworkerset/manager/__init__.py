"""Runs the controllers and webhooks of the manager, based on configuration and flags."""
