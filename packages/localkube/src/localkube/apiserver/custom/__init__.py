"""Implements custom resources."""
