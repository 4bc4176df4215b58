"""How recorded episodes are stored and read."""

from leaderworkerset.recording.configmapstore import place_of as episode_place
from leaderworkerset.recording.configmapstore import stored as stored_episodes
from leaderworkerset.recording.configmapstore import unpacked as unpacked_episode
from leaderworkerset.recording.shelf import Place as EpisodePlace
from leaderworkerset.recording.store import Store as EpisodeStore
from leaderworkerset.recording.store import places as episode_places
from leaderworkerset.recording.store import read as read_episode
