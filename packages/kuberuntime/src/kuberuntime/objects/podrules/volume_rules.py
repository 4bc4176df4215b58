"""Validates the volumes of a pod, and returns the same errors as kube-apiserver."""

from collections.abc import Collection, Iterator

from kuberuntime.objects import names
from kuberuntime.objects.field import FieldError, all_invalid, invalid, required_error
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules.container_rules import validate_local_path
from kuberuntime.objects.podrules.env_rules import validate_field_ref
from kuberuntime.objects.podrules.values import duplicate, forbidden, validate_choice

MAX_FILE_MODE = 0o777
HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
VOLUME_FIELD_PATHS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
REQUIRED_NAMES = {
    "secret": "secretName", "configMap": "name", "persistentVolumeClaim": "claimName", "hostPath": "path",
    "csi": "driver",
}  # fmt: skip
SOURCES = (
    "emptyDir", "hostPath", "secret", "nfs", "iscsi", "persistentVolumeClaim", "downwardAPI", "configMap", "projected",
    "csi", "ephemeral", "image",
)  # fmt: skip
"""The volume sources in the order of validation. If a volume has several sources, the first source is validated."""

PROJECTIONS = (
    "secret", "downwardAPI", "configMap", "serviceAccountToken", "clusterTrustBundle", "podCertificate",
)  # fmt: skip


def validate(volume: JSONObject, others: Collection[str], path: str) -> Iterator[FieldError]:
    """Yield all errors of a volume. `others` contains the names of the previous volumes."""
    name = volume["name"]
    if not name:
        yield required_error(f"{path}.name")
    elif name in others:
        yield duplicate(f"{path}.name", name)
    else:
        yield from all_invalid(f"{path}.name", name, names.dns_1123_label(name))
    yield from _validate_source(volume, path)


def _validate_source(volume: JSONObject, path: str) -> Iterator[FieldError]:
    first, *others = sorted(volume.keys() - {"name"}, key=_rank)
    for other in others:
        yield forbidden(f"{path}.{other}", "may not specify more than 1 volume type")
    source = volume[first]
    field = REQUIRED_NAMES.get(first)
    if field is not None and not source.get(field):
        yield required_error(f"{path}.{first}.{field}")
    match first:
        case "secret" | "configMap":
            yield from _validate_mode(source, "defaultMode", f"{path}.{first}")
            yield from _validate_items(source, f"{path}.{first}")
        case "downwardAPI":
            yield from _validate_mode(source, "defaultMode", f"{path}.{first}")
            yield from _validate_downward(source, f"{path}.{first}")
        case "projected":
            yield from _validate_mode(source, "defaultMode", f"{path}.{first}")
            yield from _validate_projected(source, f"{path}.{first}")
        case "hostPath":
            yield from validate_choice(source.get("type", ""), HOST_PATH_TYPES, f"{path}.hostPath.type")
            if ".." in source["path"].split("/"):
                yield invalid(f"{path}.hostPath.path", source["path"], "must not contain '..'")
        case "ephemeral" if "volumeClaimTemplate" not in source:
            yield required_error(f"{path}.ephemeral.volumeClaimTemplate")


def _rank(source: str) -> int:
    return SOURCES.index(source) if source in SOURCES else len(SOURCES)


def _validate_mode(source: JSONObject, field: str, path: str) -> Iterator[FieldError]:
    mode = source.get(field)
    if mode is not None and not 0 <= mode <= MAX_FILE_MODE:
        yield invalid(f"{path}.{field}", mode, "must be a number between 0 and 0777 (octal), both inclusive")


def _validate_items(source: JSONObject, path: str) -> Iterator[FieldError]:
    for index, item in enumerate(source.get("items") or ()):
        where = f"{path}.items[{index}]"
        if not item["key"]:
            yield required_error(f"{where}.key")
        yield from _validate_item_path(item, where)


def _validate_item_path(item: JSONObject, where: str) -> Iterator[FieldError]:
    if not item["path"]:
        yield required_error(f"{where}.path")
    yield from validate_local_path(item["path"], f"{where}.path")
    yield from _validate_mode(item, "mode", where)


def _validate_downward(source: JSONObject, path: str) -> Iterator[FieldError]:
    """Yield the errors of downward API files. As in kube-apiserver, the errors do not contain the item index."""
    for item in source.get("items") or ():
        yield from _validate_item_path(item, path)
        if "fieldRef" in item and "resourceFieldRef" in item:
            yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
        elif "fieldRef" in item:
            yield from validate_field_ref(item["fieldRef"], f"{path}.fieldRef", VOLUME_FIELD_PATHS)
        elif "resourceFieldRef" in item:
            if not item["resourceFieldRef"].get("containerName"):
                yield required_error(f"{path}.resourceFieldRef.containerName")
        else:
            yield required_error(path, "one of fieldRef and resourceFieldRef is required")


def _validate_projected(source: JSONObject, path: str) -> Iterator[FieldError]:
    for index, projection in enumerate(source.get("sources") or ()):
        where = f"{path}.sources[{index}]"
        sources = [name for name in PROJECTIONS if name in projection]
        if not sources:
            yield required_error(where, "Projected volume source is required")
        for other in sources[1:]:
            yield forbidden(f"{where}.{other}", "may not specify more than 1 volume type per source")
        for name in sources[:1]:
            yield from _validate_projection(name, projection[name], f"{where}.{name}")


def _validate_projection(name: str, projection: JSONObject, where: str) -> Iterator[FieldError]:
    match name:
        case "secret" | "configMap":
            if not projection.get("name"):
                yield required_error(f"{where}.name")
            yield from _validate_items(projection, where)
        case "downwardAPI":
            yield from _validate_downward(projection, where)
        case "serviceAccountToken" if not projection["path"]:
            yield required_error(f"{where}.path")
