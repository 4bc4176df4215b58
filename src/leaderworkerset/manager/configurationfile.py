"""The manager's configuration file: read, decoded, and checked for what can be used."""

from pathlib import Path

from kuberuntime.manifests import yamltext
from kuberuntime.objects.field import aggregate
from leaderworkerset.manager import configuration
from leaderworkerset.manager.configuration import Configuration, ConfigurationError


def load(path: str) -> Configuration:
    """Read the configuration file; without one, the defaults."""
    if not path:
        return Configuration()
    try:
        document = yamltext.load(Path(path).read_bytes(), unique_keys=True)
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from error
    except yamltext.YamlError as error:
        raise ConfigurationError(f"{path}: not valid YAML: {error}") from error
    try:
        return configuration.decode(document)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def check(chosen: Configuration) -> None:
    """Raise for values that cannot be used (R-CFG-1, R-CFG-2) or are not built yet."""
    failures = configuration.validate(chosen)
    if failures:
        raise ConfigurationError(aggregate(failures))
    configuration.check_tls(chosen.tls)
    if chosen.gang_scheduling_management is not None:
        raise ConfigurationError(
            "gangSchedulingManagement: gang scheduling is not built yet in this version: remove the section"
        )
