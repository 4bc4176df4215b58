"""Provides the LeaderWorkerSet as a custom kind with a large schema, for packages that do not depend on it."""

from typing import Final

import yaml

from kuberuntime.manifests.yamltext import SafeLoader
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource

from .repository import ROOT

LEADERWORKERSETS: Final = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet")


def definition() -> JSONObject:
    """Return the installed CustomResourceDefinition of LeaderWorkerSets."""
    definition: JSONObject = yaml.load((ROOT / "deploy/crds/leaderworkersets.yaml").read_text(), SafeLoader)
    return definition
