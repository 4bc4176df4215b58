"""Reads and validates the manager's configuration file."""

from pathlib import Path

from kuberuntime.objects.field import aggregate
from leaderworkerset.capabilities import names
from leaderworkerset.kinds.managedkinds import Configured
from leaderworkerset.manager.config import configuration, configurationrules
from leaderworkerset.manager.config.configuration import Configuration, ConfigurationError


def load(path: str) -> Configuration:
    """Return the configuration in a file, or the defaults if no file is specified."""
    if not path:
        return Configuration()
    try:
        return configuration.parse(Path(path).read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from error
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def check(settings: Configuration) -> None:
    """Raise an error for invalid values, for example in the leader election settings (R-CFG-1, R-CFG-2)."""
    failures = configurationrules.validate(settings)
    if failures:
        raise ConfigurationError(aggregate(failures))
    configurationrules.check_tls(settings.tls)


def opted_in(configuration: Configuration) -> Configured:
    """Return the settings of the enabled capabilities."""
    settings = {
        names.BACKOFF: configuration.restarts,
        names.RECORDER: configuration.recorder.enable,
        names.DISRUPTION: configuration.disruption,
        names.MOVES: configuration.maintenance_settings,
        names.LOST_NODES: configuration.release_after,
        names.POD_ADMISSION: configuration.allows_pod_policies or None,
    }
    return {name: value for name, value in settings.items() if value is not None}
