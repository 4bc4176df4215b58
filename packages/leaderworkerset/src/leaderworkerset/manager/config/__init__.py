"""Defines the manager configuration file, including its types and validation."""
