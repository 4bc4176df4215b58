"""Access to the API server for clients on this machine: HTTP, WebSockets, credentials, and pod streams."""
