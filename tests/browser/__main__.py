"""`python -m tests.browser` takes the pictures of the documentation."""

import asyncio

from tests.browser.pictures import FOLDER, take

if __name__ == "__main__":
    asyncio.run(take(FOLDER))
