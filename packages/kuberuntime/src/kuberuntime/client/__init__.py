"""The client: the verbs of the Kubernetes API over a transport."""
