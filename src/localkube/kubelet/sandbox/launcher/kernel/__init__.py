"""System calls, namespaces, mounts and the network, as the launcher needs them."""
