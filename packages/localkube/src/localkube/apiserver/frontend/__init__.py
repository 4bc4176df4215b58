"""Provides access to the API server for local clients: HTTP, WebSockets, credentials, and pod streams."""
