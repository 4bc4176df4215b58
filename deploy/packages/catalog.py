"""Builds the file-based catalog of both packages (R-OP-38, R-OP-71, D2), with packages, channels and bundles."""

from collections.abc import Sequence
from typing import Final

from deploy.packages import bundle
from deploy.packages.bundle import Package

import leaderworkerset
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.install.operatornames import OPERATORS

IMAGE: Final = f"localhost/leaderworkerset-catalog:v{leaderworkerset.__version__}"
"""The name of the catalog image."""


def bundle_image(package: Package) -> str:
    """Return the image name of an unreleased bundle."""
    return f"localhost/{package.name}-bundle:v{leaderworkerset.__version__}"


def edges(package: Package, version: str) -> JSONObject:
    """Return the channel entry of the only version in its catalog. All older versions upgrade directly."""
    before = {} if version == bundle.FORMER else {"skips": [package.version_name(bundle.FORMER)]}
    return {"name": package.version_name(version), "skipRange": f">=0.0.1 <{version}"} | before


def blobs(package: Package, version: JSONObject, image: str) -> Sequence[JSONObject]:
    """Return the blobs of one package, whose bundle is in an image. The first channel is the default."""
    spec = meta.spec(version)
    own = {
        "annotations": meta.annotations(version),
        "displayName": spec["displayName"],
        "description": spec["description"],
        "installModes": spec["installModes"],
        "keywords": spec["keywords"],
        "links": spec["links"],
        "maintainers": spec["maintainers"],
        "maturity": spec["maturity"],
        "minKubeVersion": spec["minKubeVersion"],
        "provider": spec["provider"],
        "labels": meta.labels(version),
        "apiServiceDefinitions": {},
        "crdDescriptions": {"owned": spec["customresourcedefinitions"]["owned"]},
    }
    return [
        {"schema": "olm.package", "name": package.name, "defaultChannel": package.channels[0]},
        *(
            {
                "schema": "olm.channel",
                "package": package.name,
                "name": channel,
                "entries": [edges(package, spec["version"])],
            }
            for channel in package.channels
        ),
        {
            "schema": "olm.bundle",
            "name": meta.name(version),
            "package": package.name,
            "image": image,
            "properties": [
                {
                    "type": "olm.gvk",
                    "value": {"group": OPERATORS.group, "kind": OPERATORS.kind, "version": OPERATORS.version},
                },
                {"type": "olm.package", "value": {"packageName": package.name, "version": spec["version"]}},
                {"type": "olm.csv.metadata", "value": own},
                *bundle.properties()["properties"],
            ],
            "relatedImages": [{"name": "", "image": image}, *spec["relatedImages"]],
        },
    ]
