"""The accelerators of this machine: how they are found, given to containers, and watched."""
