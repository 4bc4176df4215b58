"""The base classes of errors that prevent a cluster from starting; this module imports nothing of the package."""


class LocalkubeError(Exception):
    """The cluster cannot be started; the text names the file, port or setting and says what to do."""


class SettingsError(LocalkubeError, ValueError):
    """A setting is invalid; `setting` is its name in `Nodes` or `Settings`, the text describes a valid value."""

    def __init__(self, setting: str, message: str) -> None:
        super().__init__(f"{setting}: {message}")
        self.setting = setting
        self.message = message
