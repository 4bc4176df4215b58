"""What the API server is made of: kinds, their registry, refusals, the seam to the kubelet."""
