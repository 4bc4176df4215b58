"""Configures in-cluster access from the environment and from the files of the service account."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kuberuntime.access import urls
from kuberuntime.access.access import TLS, Access
from kuberuntime.access.credentials import SecretEntry, StoredCredentials
from kuberuntime.errors import ConfigError

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST: Final = "KUBERNETES_SERVICE_HOST"
PORT: Final = "KUBERNETES_SERVICE_PORT"


def is_available(environment: Mapping[str, str]) -> bool:
    """Return whether this process runs in a pod."""
    return bool(environment.get(HOST))


def access(environment: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> Access:
    """Return the in-cluster access. The token is reread periodically, because the kubelet renews it."""
    host, port = environment.get(HOST, ""), environment.get(PORT, "443")
    token, authority = directory / "token", directory / "ca.crt"
    if not token.exists():
        raise ConfigError(
            f"{token}: no such file, although {HOST} is set. Set automountServiceAccountToken to true, or specify "
            "--kubeconfig"
        )
    nothing = SecretEntry(str(directory))
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    urls.check_server(server, f"{HOST}, {PORT}")
    return Access(
        server=server,
        credentials=StoredCredentials(token=SecretEntry("in-cluster", file=token), certificate=nothing, key=nothing),
        tls=TLS(SecretEntry("in-cluster", file=authority).read(), entry=str(authority), file=authority),
        namespace=_namespace(directory / "namespace"),
        context="in-cluster",
    )


def _namespace(path: Path) -> str:
    if not path.exists():
        return "default"
    return SecretEntry(str(path), file=path).read().decode(errors="replace").strip()
