"""Defines the Go types and schemas of the built-in kinds as data, and decodes objects as these types."""
