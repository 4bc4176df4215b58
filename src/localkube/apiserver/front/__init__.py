"""How clients of this machine get in: HTTP, WebSockets, credentials, and the streams of pods."""
