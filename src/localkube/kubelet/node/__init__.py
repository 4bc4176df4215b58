"""What all pods of a node share: files, hosts, objects, events."""
