"""Converts a container of a pod spec to the process that the runner starts.

In: the container, the values it refers to, the directories of its volumes. Out: a `Launch`, or `SpecError` (the
container is invalid) or `UnrunnableError` (this machine does not have what it needs; with `stub` the stub server is
launched).

Limits of CPU see `sandbox/cpugroups.py`, of memory `node/oomwatcher.py`. The fields `runAsUser`,
`runAsGroup`, `runAsNonRoot` and `readOnlyRootFilesystem` of the security context are honored or refused. Other fields
are ignored: no process gets more rights than the user who runs the cluster.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.accelerators.visibledevices import visibility_variables
from localkube.kubelet.container import images
from localkube.kubelet.container.images import ProgramSource, SearchPath, UnrunnableError
from localkube.kubelet.pod.podstatus import STUB_IMAGE
from localkube.kubelet.processes.kubeletsettings import KubeletSettings
from localkube.kubelet.processes.runner import Capabilities, Mount
from localkube.kubelet.spec import environment, podspec, probes
from localkube.kubelet.spec.environment import EnvironmentInputs
from localkube.kubelet.spec.podspec import SpecError
from localkube.kubelet.volumes import directories, volumemounts

TERMINATION_PATH: Final = "/dev/termination-log"


class LaunchInputs(Struct, frozen=True):
    """The inputs in addition to the spec: the settings, and the directories of the pod's volumes."""

    settings: KubeletSettings
    volumes: Mapping[str, Path]
    termination_file: Path


class Launch(Struct, frozen=True, kw_only=True):
    """The process to start. `container` is the spec to use afterwards. For a stub, it has no exec probes."""

    container: JSONObject
    image_id: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None = None
    mounts: tuple[Mount, ...] = ()
    root: Path | None = None
    user: int | None = None
    group: int | None = None
    read_only_root: bool = False
    stub_ports: tuple[int, ...] = ()


class _Command(Struct, frozen=True):
    place: ProgramSource
    env: Mapping[str, str]
    argv: tuple[str, ...]


def plan(container: JSONObject, context: EnvironmentInputs, around: LaunchInputs) -> Launch:
    """Return the process to start for a container."""
    podspec.require_no_nul(container, f"containers[{container['name']}]")
    if meta.spec(context.pod).get("resourceClaims"):
        raise SpecError(
            "spec.resourceClaims: not supported on a local cluster. Request an extended resource, or remove "
            "resourceClaims"
        )
    images.check_name(container.get("image") or "")
    why = stub_reason(container, context, around.settings)
    if why:
        return _stub(container, context, around.settings, why)
    probes.check(container)
    command = _command(container, context, around.settings)
    user, group = _identity(container, context.pod, around)
    security = container.get("securityContext") or {}
    return Launch(
        container=container,
        image_id=command.place.image_id,
        argv=command.argv,
        env=command.env,
        cwd=container.get("workingDir") or (str(command.place.folder) if command.place.folder else None),
        mounts=_mounts(container, context.pod, around, command.env),
        root=command.place.root,
        user=user,
        group=group,
        read_only_root=_read_only(
            container, bool(security.get("readOnlyRootFilesystem")), around.settings.capabilities
        ),
    )


def stub_reason(container: JSONObject, context: EnvironmentInputs, settings: KubeletSettings) -> str:
    """Return the reason why the stub server replaces the container, or an empty string if it does not."""
    if not settings.stub:
        return ""
    image = container.get("image") or ""
    if settings.stub_images & {"all", image, images.without_tag(image)}:
        return "--stub replaces it"
    try:
        command = _command(container, replace(context, skips_missing_sources=True), settings)
        path = command.env.get("PATH", "")
        directory = container.get("workingDir") or str(command.place.folder or "/")
        images.check_script(image, command.argv, command.place, SearchPath(path, directory, _mounted_paths(container)))
        if not (command.place.directory or container.get("workingDir") or command.env.get("PYTHONPATH")):
            images.check_module(image, command.argv, path)
    except UnrunnableError as why:
        return str(why)
    return ""


def _command(container: JSONObject, context: EnvironmentInputs, settings: KubeletSettings) -> _Command:
    image = container.get("image") or ""
    place = images.find_source(image, settings.images)
    base = environment.host_variables(settings.host_environment, own_root=place.root is not None)
    if place.environment:
        base = environment.use_environment(base, place.environment)
    env = environment.build(container, context, base)
    if context.devices is not None:
        env = visibility_variables(env, context.devices.get(container["name"], ()))
    words = [*(container.get("command") or []), *(container.get("args") or [])]
    argv = environment.expand_all(words, env)
    images.check_command(image, argv, has_command=bool(container.get("command")), place=place)
    images.check_program(image, argv[0], env.get("PATH", ""), place, _mounted_paths(container))
    images.check_directory(image, container.get("workingDir") or "/", place, _mounted_paths(container))
    return _Command(place, env, argv)


def _mounted_paths(container: JSONObject) -> list[str]:
    return [mount["mountPath"] for mount in container.get("volumeMounts") or []]


def _stub(container: JSONObject, context: EnvironmentInputs, settings: KubeletSettings, why: str) -> Launch:
    argv, ports = images.stub_command(context.pod, container, why)
    base = environment.host_variables(settings.host_environment, own_root=False)
    env = environment.build(container, replace(context, skips_missing_sources=True), base)
    fields = {key: value for key, value in container.items() if key != "lifecycle"}
    omitted = [
        f"{kind}Probe" for kind, probe in podspec.container_probes(container) if probe.get("exec") or probe.get("grpc")
    ]
    probed = {
        f"{kind}Probe": {**probe, "initialDelaySeconds": 0} for kind, probe in podspec.container_probes(container)
    }
    return Launch(
        container={key: value for key, value in (fields | probed).items() if key not in omitted},
        image_id=f"{STUB_IMAGE}{container.get('image') or ''}",
        argv=argv,
        env=env | {"PATH": base["PATH"]},
        stub_ports=ports,
    )


def _identity(container: JSONObject, pod: JSONObject, around: LaunchInputs) -> tuple[int | None, int | None]:
    security = (meta.spec(pod).get("securityContext") or {}) | (container.get("securityContext") or {})
    user, group = security.get("runAsUser"), security.get("runAsGroup")
    host_user = around.settings.host_user
    if security.get("runAsNonRoot") and (host_user if user is None else user) == 0:
        raise SpecError(
            "container has runAsNonRoot and would run as root. Set runAsUser, or start the cluster as a different user"
        )
    if host_user != 0 and user not in (None, host_user):
        raise SpecError(
            f"securityContext.runAsUser: {user}: not supported, because the cluster runs as user {host_user}. Remove "
            "it, or run the cluster as root"
        )
    return user, group


def _read_only(container: JSONObject, read_only: bool, capabilities: Capabilities) -> bool:  # noqa: FBT001
    if read_only and not capabilities.has_namespaces:
        raise SpecError(
            f'container "{container["name"]}", securityContext.readOnlyRootFilesystem: not supported, because this '
            "machine does not permit namespaces. Remove it"
        )
    return read_only


def _mounts(container: JSONObject, pod: JSONObject, around: LaunchInputs, env: Mapping[str, str]) -> tuple[Mount, ...]:
    mounts = volumemounts.build(container, directories.volumes_by_name(pod), around.volumes, env)
    if not around.settings.capabilities.has_namespaces:
        return mounts
    message = Mount(around.termination_file, container.get("terminationMessagePath") or TERMINATION_PATH)
    return (*mounts, message)
