"""Defines the environment variables that limit a process to the devices of its container."""

from collections.abc import Mapping, Sequence
from typing import Final

from localkube.kubelet.accelerators.accelerator import device_uuid

CUDA: Final = "CUDA_VISIBLE_DEVICES"
NVIDIA: Final = "NVIDIA_VISIBLE_DEVICES"
NONE: Final = "void"
"""The value of `NVIDIA_VISIBLE_DEVICES` for a container without devices."""


def visibility_variables(env: Mapping[str, str], devices: Sequence[str]) -> dict[str, str]:
    """Return the environment variables for a container with these devices.

    A manifest may set CUDA_VISIBLE_DEVICES, whose numbers refer to the devices of the container, not of the machine.

    >>> visibility_variables({}, ["GPU-a", "GPU-b"])["CUDA_VISIBLE_DEVICES"]
    'GPU-a,GPU-b'
    >>> visibility_variables({"CUDA_VISIBLE_DEVICES": "1"}, ["GPU-a", "GPU-b"])["CUDA_VISIBLE_DEVICES"]
    'GPU-b'
    >>> visibility_variables({"CUDA_VISIBLE_DEVICES": "0"}, [])
    {'CUDA_VISIBLE_DEVICES': '', 'NVIDIA_VISIBLE_DEVICES': 'void'}
    """
    own = list(dict.fromkeys(map(device_uuid, devices)))
    selection = own if env.get(CUDA) is None else _select_devices(env[CUDA], own)
    return {**env, CUDA: ",".join(selection), NVIDIA: ",".join(own) or NONE}


def _select_devices(text: str, own: Sequence[str]) -> list[str]:
    """Return the devices of the container in a value. As in CUDA, items after an invalid item are ignored."""
    devices: list[str] = []
    for word in map(str.strip, text.split(",")):
        number = int(word) if word.isascii() and word.isdecimal() else -1
        device = own[number] if 0 <= number < len(own) else word
        if device not in own or device in devices:
            break
        devices.append(device)
    return devices
