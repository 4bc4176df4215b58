"""The volumes of pods: directories on the host that containers see at their mount paths."""
