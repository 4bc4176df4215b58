"""What the server says of itself and of the caller."""
