"""Descriptions of the built-in kinds, one line each; `openapi_schemas.py` adds where their fields are described."""

from typing import Final

KINDS: Final = {
    "ConfigMap": "A ConfigMap holds settings that pods read as environment variables or files.",
    "ControllerRevision": "A ControllerRevision is one state of a template, kept so that it can be restored.",
    "CustomResourceDefinition": "A CustomResourceDefinition adds a kind to the cluster.",
    "EndpointSlice": "An EndpointSlice lists addresses and ports of pods behind a Service.",
    "Endpoints": "Endpoints list addresses and ports of pods behind a Service, in the older form.",
    "Event": "An Event reports what happened to an object.",
    "Lease": "A Lease is held by one of several candidates until it expires.",
    "MutatingWebhookConfiguration": "A MutatingWebhookConfiguration names servers that may change what is written.",
    "Namespace": "A Namespace holds objects whose names are unique in it.",
    "Node": "A Node runs pods. Those of the embedded cluster are simulated, on one machine.",
    "PersistentVolume": "A PersistentVolume is storage that outlives the pods that use it.",
    "PersistentVolumeClaim": "A PersistentVolumeClaim asks for a PersistentVolume.",
    "Pod": "A Pod is a group of containers that are started together, with one host name and one address.",
    "PriorityClass": "A PriorityClass names a priority of pods.",
    "Secret": "A Secret holds confidential data, such as tokens and keys.",
    "Service": "A Service gives a name to the pods that its selector matches.",
    "ServiceAccount": "A ServiceAccount is the identity of a pod's programs at the API server.",
    "StatefulSet": "A StatefulSet keeps a number of pods running whose names are numbered and stay.",
    "StorageClass": "A StorageClass describes how volumes for claims are provisioned.",
    "ValidatingWebhookConfiguration": "A ValidatingWebhookConfiguration names servers that may refuse what is written.",
}
