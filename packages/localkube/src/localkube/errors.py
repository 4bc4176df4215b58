"""Defines the base classes of errors that prevent the start of a cluster. This module has no imports."""


class LocalkubeError(Exception):
    """The cluster cannot be started. The message contains the file, port or setting, and the solution."""


class SettingsError(LocalkubeError, ValueError):
    """A setting is invalid. `setting` is its name in `Nodes` or `Settings`. The message describes a valid value."""

    def __init__(self, setting: str, message: str) -> None:
        super().__init__(f"{setting}: {message}")
        self.setting = setting
        self.message = message
