"""WebSockets of clients, and their channels."""
