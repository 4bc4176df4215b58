"""Sets defaults of the built-in kinds and validates them, with the messages of kube-apiserver."""
