"""Stores and reads recorded episodes."""

from leaderworkerset.recording.configmapstore import decompress as unpacked_episode
from leaderworkerset.recording.configmapstore import episode_location as episode_place
from leaderworkerset.recording.configmapstore import list_episodes as stored_episodes
from leaderworkerset.recording.episoderetention import EpisodeLocation as EpisodePlace
from leaderworkerset.recording.filestore import Store as EpisodeStore
from leaderworkerset.recording.filestore import places as episode_places
from leaderworkerset.recording.filestore import read as read_episode
