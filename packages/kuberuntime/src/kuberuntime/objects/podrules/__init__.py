"""Sets defaults for pods and pod templates and validates them, with the messages of kube-apiserver. Pure."""
