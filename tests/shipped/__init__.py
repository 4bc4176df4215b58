"""What ships is what is tested: the settings that are tried, and the places where tests replace a part of what ships."""
