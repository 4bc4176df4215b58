"""Implements volume claims on one machine."""
