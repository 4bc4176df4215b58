"""The log files of containers: format, writing, rotation, reading."""
