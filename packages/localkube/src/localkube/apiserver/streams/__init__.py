"""Implements WebSockets of clients, and their channels."""
