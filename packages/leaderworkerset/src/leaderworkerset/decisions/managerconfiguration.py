"""Exports the manager configuration, and the pod admission policy if the configuration allows it."""

from leaderworkerset.core.admission import podpolicy
from leaderworkerset.manager.config.configuration import Configuration, ConfigurationError, PodAdmission
from leaderworkerset.manager.config.configuration import parse as parse_configuration
