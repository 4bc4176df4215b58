"""What `lws install` and `lws uninstall` are made of."""
