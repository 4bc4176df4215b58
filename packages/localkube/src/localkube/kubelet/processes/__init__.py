"""The seam between the kubelet and processes: the runner of pods, and connections into them."""
