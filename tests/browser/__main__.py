"""Takes the screenshots for the documentation, with `python -m tests.browser`."""

import asyncio

from tests.browser.pictures import FOLDER, take

if __name__ == "__main__":
    asyncio.run(take(FOLDER))
