"""What the kubelet reads of a pod specification. Pure."""
