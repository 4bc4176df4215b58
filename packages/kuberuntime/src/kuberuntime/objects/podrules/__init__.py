"""Kubernetes' rules for pods and pod templates: defaults and validation, with the messages of kube-apiserver. Pure."""
