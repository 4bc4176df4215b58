"""WebSockets of clients and the channels in them."""
