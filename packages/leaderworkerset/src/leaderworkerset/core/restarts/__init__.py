"""Handles restart limits, failure descriptions, and pods on lost nodes."""
