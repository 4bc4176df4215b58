"""How clients of this machine reach the API server: HTTP, WebSockets, credentials, and the streams of pods."""
