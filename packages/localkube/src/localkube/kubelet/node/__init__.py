"""The components that all pods of a node share: hosts files, objects, events, and the removal of directories."""
