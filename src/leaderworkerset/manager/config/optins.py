"""What a configuration has switched on that is off by default: in: a configuration, out: the options of the kinds."""

from leaderworkerset.kinds.managed import OptIns
from leaderworkerset.manager.config.configuration import Configuration


def opted_in(configuration: Configuration) -> OptIns:
    """Return what the manager does with this configuration beside what it always does."""
    return OptIns(
        records=configuration.recorder.enable,
        disruption=configuration.disruption,
        maintenance=configuration.moving,
    )
