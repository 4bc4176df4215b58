"""What a program prints is kept, up to a bound."""

import asyncio
import os
import stat
from pathlib import Path

from localkube.kubelet.sandbox.outputlog import OutputLog


def written(path: Path, pieces: list[bytes], limit: int) -> None:
    """Write pieces as a program would, each moved before the next."""

    async def scenario() -> None:
        log = OutputLog(path, limit)
        theirs = log.open()
        for piece in pieces:
            os.write(theirs, piece)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        os.close(theirs)
        log.close()

    asyncio.run(scenario())


def test_what_is_printed_is_in_the_file_of_the_owner(tmp_path: Path) -> None:
    written(tmp_path / "log", [b"one\n", b"two\n"], 1000)

    assert (tmp_path / "log").read_bytes() == b"one\ntwo\n"
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o600


def test_both_files_together_stay_within_a_bound(tmp_path: Path) -> None:
    written(tmp_path / "log", [b"%04d\n" % number for number in range(1000)], 500)

    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {"log", "log.1"}
    assert all(size <= 505 for size in sizes.values())
    assert (tmp_path / "log").read_bytes().endswith(b"0999\n")


def test_a_file_that_cannot_be_written_costs_its_lines_only(tmp_path: Path) -> None:
    written(tmp_path / "missing" / "log", [b"one\n"], 500)

    assert list(tmp_path.iterdir()) == []


def test_the_end_of_the_program_ends_the_reading(tmp_path: Path) -> None:
    async def scenario() -> None:
        log = OutputLog(tmp_path / "log")
        os.close(log.open())
        await asyncio.sleep(0.01)
        log.close()
        os.close(log.open())
        log.close()

    before = len(list(Path("/proc/self/fd").iterdir()))
    asyncio.run(scenario())
    assert len(list(Path("/proc/self/fd").iterdir())) == before
