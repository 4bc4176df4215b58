"""Finds and merges kubeconfig files, selects a context, and returns an `Access`.

Input: the environment, `--kubeconfig`, `--context`. Output: an `Access`, or a `ConfigError` with the file, the entry
and the fix. The rules are the same as in kubectl. The file in `--kubeconfig` must exist, and missing files in
KUBECONFIG are skipped. If several files contain the same entry, the first file takes precedence. Paths are relative
to the file that contains them. If there is no file, the service account of the pod is used (`incluster.py`).
"""

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from kuberuntime.access import incluster, urls
from kuberuntime.access.access import TLS, Access
from kuberuntime.access.credentials import (
    CredentialSource,
    ExecConfig,
    RedactedStruct,
    SecretEntry,
    StoredCredentials,
    read_file,
)
from kuberuntime.errors import ConfigError, NotConfiguredError
from kuberuntime.manifests import yamltext
from kuberuntime.manifests.yamltext import YamlError
from kuberuntime.objects.meta import JSON, JSONObject

EXEC_CLUSTER_FIELDS: Final = (
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "certificate-authority-data",
    "proxy-url",
    "disable-compression",
)
"""The fields of a cluster entry that an exec plugin receives if it requests cluster information."""


EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"
"""The cluster extension whose content an exec plugin receives as `spec.cluster.config`."""


class Extension(msgspec.Struct, frozen=True):
    """A named extension in JSON format, which is used by other tools."""

    name: str
    extension: JSON = None


class Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    """The `clusters[].cluster` field of a kubeconfig."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: tuple[Extension, ...] = ()


class User(RedactedStruct, frozen=True, rename="kebab"):
    """The `users[].user` field of a kubeconfig."""

    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    exec: ExecConfig | None = None
    username: str = ""
    password: str = ""
    auth_provider: JSON = None
    impersonated: str = msgspec.field(default="", name="as")
    impersonated_uid: str = msgspec.field(default="", name="as-uid")
    impersonated_groups: tuple[str, ...] = msgspec.field(default=(), name="as-groups")
    impersonated_extra: JSON = msgspec.field(default=None, name="as-user-extra")

    @property
    def has_token(self) -> bool:
        """Return whether requests of this user contain a bearer token."""
        return bool(self.token or self.token_file or self.exec)


class Context(msgspec.Struct, frozen=True):
    """The `contexts[].context` field of a kubeconfig."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: Cluster


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: User = User()


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: Context


class _File(msgspec.Struct, frozen=True, rename="kebab"):
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()
    contexts: tuple[_NamedContext, ...] = ()
    current_context: str = ""


T = TypeVar("T")


class Entry(msgspec.Struct, Generic[T], frozen=True):
    """A kubeconfig value with the file and the entry that contain it."""

    value: T
    file: Path
    path: str

    def field(self, name: str) -> str:
        """Return the location of a field in this entry, for use in error messages."""
        return f"{self.file}: {self.path}.{name}"

    def resolve(self, path: str) -> Path:
        """Return a path from the entry, resolved against the directory of its file."""
        return self.file.parent / path


class KubeConfig(msgspec.Struct, frozen=True):
    """The merged kubeconfig files."""

    files: tuple[Path, ...]
    clusters: Mapping[str, Entry[Cluster]]
    users: Mapping[str, Entry[User]]
    contexts: Mapping[str, Entry[Context]]
    current_context: str


def load(environment: Mapping[str, str], *, kubeconfig: str = "", context: str = "") -> Access:
    """Return the access that is specified by the kubeconfig files or by the service account of this pod."""
    config = read(find(environment, kubeconfig))
    is_empty = not config.contexts and not context
    if is_empty and not kubeconfig and incluster.is_available(environment):
        return incluster.access(environment)
    if not config.files and (paths := environment.get("KUBECONFIG", "").strip(":")):
        raise NotConfiguredError(f"the files in KUBECONFIG do not exist: {paths}")
    return resolve(config, context)


def find(environment: Mapping[str, str], kubeconfig: str = "") -> tuple[Path, ...]:
    """Return the kubeconfig files to read."""
    if kubeconfig:
        path = _expand_user(kubeconfig)
        if not _exists(path):
            raise ConfigError(f"{path}: no such file. Specify the path of a kubeconfig file")
        return (path,)
    parts = [part for part in environment.get("KUBECONFIG", "").split(":") if part]
    candidates = [_expand_user(part) for part in parts] or [
        _expand_user(environment.get("HOME", "~")) / ".kube" / "config"
    ]
    return tuple(path for path in dict.fromkeys(candidates) if _exists(path))


def _expand_user(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:  # ~user refers to an unknown user
        raise ConfigError(f"{path}: {error}") from error


def _exists(path: Path) -> bool:
    try:
        path.stat()  # since Python 3.14, exists() returns False for unreadable paths
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL character in the name
        return False
    except OSError as error:  # a directory without search permission, or a name that is too long
        raise ConfigError(f"{path}: cannot read the file: {error.strerror}") from error
    return True


def read(files: Sequence[Path]) -> KubeConfig:
    """Read and merge files. If several files contain the same entry, the first file takes precedence."""
    contents = [(path.absolute(), parse(path)) for path in files]
    return KubeConfig(
        files=tuple(path for path, _ in contents),
        clusters=_merge(
            (cluster.name, Entry(cluster.cluster, path, f"clusters[{cluster.name}].cluster"))
            for path, file in contents
            for cluster in file.clusters
        ),
        users=_merge(
            (user.name, Entry(user.user, path, f"users[{user.name}].user"))
            for path, file in contents
            for user in file.users
        ),
        contexts=_merge(
            (context.name, Entry(context.context, path, f"contexts[{context.name}].context"))
            for path, file in contents
            for context in file.contexts
        ),
        current_context=next((file.current_context for _, file in contents if file.current_context), ""),
    )


def parse(path: Path) -> _File:
    """Read one file. A value of an invalid type is an error, but unknown fields are ignored."""
    try:
        document = yamltext.load(read_file(path))
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the file: {error.strerror}") from error
    except YamlError as error:
        raise ConfigError(f"{path}: invalid YAML: {error}") from error
    if document is None:
        return _File()
    try:
        return msgspec.convert(_without_nulls(document), type=_File)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: invalid kubeconfig: {error}") from error


def resolve(config: KubeConfig, context: str = "") -> Access:
    """Return the access for a context (cluster and user). If `context` is empty, use the current context."""
    name = context or config.current_context
    if not name:
        raise _no_context(config)
    entry = _lookup(config.contexts, name, "context", _file_list(config))
    cluster = _lookup(config.clusters, entry.value.cluster, "cluster", entry.field("cluster"))
    user = _lookup(config.users, entry.value.user, "user", entry.field("user")) if entry.value.user else None
    _check_server(cluster, user)
    tls = _tls(cluster)
    return Access(
        server=cluster.value.server.rstrip("/"),
        credentials=_credentials(user, _exec_cluster(cluster, tls)) if user else _anonymous(),
        tls=tls,
        proxy=cluster.value.proxy_url,
        namespace=entry.value.namespace or "default",
        context=name,
        cluster=entry.value.cluster,
        user=entry.value.user,
    )


def _merge(entries: Iterable[tuple[str, Entry[T]]]) -> dict[str, Entry[T]]:
    merged: dict[str, Entry[T]] = {}
    for name, entry in entries:
        merged.setdefault(name, entry)
    return merged


def _lookup(entries: Mapping[str, Entry[T]], name: str, what: str, where: str) -> Entry[T]:
    if name not in entries:
        names = ", ".join(sorted(entries)) or "none"
        raise ConfigError(f"{where}: {what} {name!r} does not exist; available: {names}")
    return entries[name]


def _no_context(config: KubeConfig) -> ConfigError:
    if not config.files:
        return NotConfiguredError(
            "kubeconfig not found. Set KUBECONFIG, create ~/.kube/config, or specify --kubeconfig"
        )
    names = ", ".join(sorted(config.contexts)) or "none"
    return ConfigError(f"{_file_list(config)}: current-context is not set. Specify --context with one of: {names}")


def _file_list(config: KubeConfig) -> str:
    return ", ".join(map(str, config.files)) or "no kubeconfig"


def _check_server(cluster: Entry[Cluster], user: Entry[User] | None) -> None:
    """Raise `ConfigError` if the URL is invalid, or if a token would be sent unencrypted."""
    value, entry = cluster.value, cluster.field("server")
    parts = urls.check_server(value.server, entry)
    stays_here = urls.is_loopback(parts.hostname or "") and not value.proxy_url
    if parts.scheme == "http" and not stays_here and user is not None and user.value.has_token:
        raise ConfigError(
            f"{entry}: Invalid value: {value.server!r}: would send the token of {user.path} unencrypted. Use https://"
        )


def _tls(cluster: Entry[Cluster]) -> TLS:
    value = cluster.value
    if value.insecure_skip_tls_verify and (value.certificate_authority or value.certificate_authority_data):
        raise ConfigError(
            f"{cluster.field('insecure-skip-tls-verify')}: Invalid value: true: specifying a root certificates file "
            "with the insecure flag is not allowed. Remove one of them"
        )
    authority = _pem_entry(
        cluster, "certificate-authority", value.certificate_authority, value.certificate_authority_data
    )
    return TLS(authority.read(), value.tls_server_name, value.insecure_skip_tls_verify, authority.entry, authority.file)


def _anonymous() -> CredentialSource:
    nothing = SecretEntry("")
    return StoredCredentials(token=nothing, certificate=nothing, key=nothing)


def _credentials(user: Entry[User], cluster: JSONObject) -> CredentialSource:
    for applies, field, reason in UNSUPPORTED:
        if applies(user.value):
            raise ConfigError(f"{user.field(field)}: {reason}")
    value = user.value
    if value.exec is not None:
        from kuberuntime.access.execcredentials import ExecCredentials  # it imports asyncio

        return ExecCredentials(value.exec, entry=user.field("exec"), directory=user.file.parent, cluster=cluster)
    certificate = _pem_entry(user, "client-certificate", value.client_certificate, value.client_certificate_data)
    key = _pem_entry(user, "client-key", value.client_key, value.client_key_data)
    source = StoredCredentials(token=_token(user), certificate=certificate, key=key)
    if bool(certificate.read()) != bool(key.read()):
        lacking = key if certificate.read() else certificate
        raise ConfigError(
            f"{lacking.entry}: Required value: a client certificate requires a key, and a key requires a certificate"
        )
    return source


NO_IMPERSONATION: Final = "impersonation is not supported. Use the credentials of the intended user"

UNSUPPORTED: Final[tuple[tuple[Callable[[User], bool], str, str], ...]] = (
    (
        lambda user: bool(user.username or user.password),
        "username",
        (
            "Kubernetes does not support basic authentication since 1.19. Use a token, a client certificate or an exec "
            "plugin"
        ),
    ),
    (
        lambda user: user.auth_provider is not None,
        "auth-provider",
        "Kubernetes does not support auth providers since 1.26. Use an exec plugin",
    ),
    (lambda user: bool(user.impersonated), "as", NO_IMPERSONATION),
    (lambda user: bool(user.impersonated_uid), "as-uid", NO_IMPERSONATION),
    (lambda user: bool(user.impersonated_groups), "as-groups", NO_IMPERSONATION),
    (lambda user: bool(user.impersonated_extra), "as-user-extra", NO_IMPERSONATION),
)
"""The unsupported fields of a user entry, and their alternatives. Ignoring them would change the user of requests."""


def _token(user: Entry[User]) -> SecretEntry:
    if user.value.token_file:
        return SecretEntry(user.field("tokenFile"), file=user.resolve(user.value.token_file))
    return SecretEntry(user.field("token"), user.value.token.encode())


def _pem_entry(entry: Entry[T], field: str, path: str, data: str) -> SecretEntry:
    """Return a PEM secret, specified inline or as a file."""
    if not data:
        return SecretEntry(entry.field(field), file=entry.resolve(path) if path else None)
    try:
        return SecretEntry(entry.field(f"{field}-data"), base64.b64decode("".join(data.split()), validate=True))
    except ValueError as error:
        raise ConfigError(f"{entry.field(f'{field}-data')}: invalid base64: {error}") from error


def _exec_cluster(cluster: Entry[Cluster], tls: TLS) -> JSONObject:
    data = base64.b64encode(tls.authority).decode() if tls.authority else ""
    value = msgspec.to_builtins(cluster.value) | {"certificate-authority-data": data}
    fields = {name: value[name] for name in EXEC_CLUSTER_FIELDS if value[name]}
    config = next((entry.extension for entry in cluster.value.extensions if entry.name == EXEC_EXTENSION), None)
    return fields if config is None else {**fields, "config": config}


def _without_nulls(value: JSON) -> JSON:
    """Remove null members, which are equivalent to absent members, except in extensions of other tools."""
    if isinstance(value, dict):
        return {
            name: member if name == "extension" else _without_nulls(member)
            for name, member in value.items()
            if member is not None
        }
    return [_without_nulls(member) for member in value] if isinstance(value, list) else value
