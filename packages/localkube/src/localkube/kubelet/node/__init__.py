"""The parts that all pods of a node share: hosts files, objects, events, the removal of directories."""
