"""The base class of the errors with which a cluster refuses to start; nothing here depends on the rest of the package."""


class LocalkubeError(Exception):
    """The cluster cannot be started or restored; the text names the file, port or setting and says what to do."""


class SettingsError(LocalkubeError, ValueError):
    """A setting is invalid; `setting` names it as `Nodes` or `Settings` does, the text says what to write instead."""

    def __init__(self, setting: str, message: str) -> None:
        super().__init__(f"{setting}: {message}")
        self.setting = setting
        self.message = message
