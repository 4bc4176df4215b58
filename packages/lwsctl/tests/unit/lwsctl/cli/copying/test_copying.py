"""Tests that files from a container are only written to the destination, and that addresses are parsed."""

import io
import os
import tarfile
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from testkit.examples import examples

from lwsctl.cli.commands.inspect.cp import Download, RankPath, Upload, destination_path, direction, parse
from lwsctl.cli.copying import archive
from lwsctl.cli.copying.transfer import CommandExit, require_success
from lwsctl.cli.errors import CommandError, UsageError
from lwsctl.views.selection import Selection

RANK = "web-0 (container main)"


def packed(*members: tuple[str, bytes | str, bytes]) -> io.BytesIO:
    """Return an archive with these names, contents or link targets, and types."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w|") as made:
        for name, content, kind in members:
            member = tarfile.TarInfo(name)
            member.type = kind
            member.mode = 0o4755
            if isinstance(content, str):
                member.linkname = content
            data = content if isinstance(content, bytes) else b""
            member.size = len(data)
            made.addfile(member, io.BytesIO(data))
    return io.BytesIO(stream.getvalue())


def test_directory_is_unpacked_with_its_files(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "inner").mkdir(parents=True)
    (source / "inner" / "a.txt").write_text("a")
    (source / "run.sh").write_text("#!/bin/sh")
    (source / "run.sh").chmod(0o755)
    (source / "link").symlink_to("run.sh")
    stream = io.BytesIO()
    archive.pack(stream, source, "sent")
    target = tmp_path / "target"
    target.mkdir()
    assert archive.unpack(io.BytesIO(stream.getvalue()), target, "got") == 2
    assert (target / "got" / "inner" / "a.txt").read_text() == "a"
    assert os.access(target / "got" / "run.sh", os.X_OK)
    assert (target / "got" / "link").readlink() == Path("run.sh")
    with tarfile.open(fileobj=io.BytesIO(stream.getvalue())) as sent:
        assert {(member.uid, member.uname) for member in sent} == {(0, "")}


@pytest.mark.parametrize(
    "members",
    [
        [("../evil", b"x", tarfile.REGTYPE)],
        [("/etc/evil", b"x", tarfile.REGTYPE)],
        [("a/../../evil", b"x", tarfile.REGTYPE)],
        [("a/link", "../../..", tarfile.SYMTYPE)],
        [("a/link", "/etc", tarfile.SYMTYPE)],
        [("a/link", "b/..", tarfile.SYMTYPE), ("a/b", "..", tarfile.SYMTYPE)],
        [("a/hard", "../../secret", tarfile.LNKTYPE)],
        [("a/pipe", b"", tarfile.FIFOTYPE)],
        [("a/device", b"", tarfile.CHRTYPE)],
    ],
    ids=[
        "parent",
        "absolute",
        "hidden parent",
        "link up",
        "absolute link",
        "link chain",
        "hard link",
        "pipe",
        "device",
    ],
)
def test_members_outside_of_the_target_are_rejected(
    tmp_path: Path, members: list[tuple[str, bytes | str, bytes]]
) -> None:
    target = tmp_path / "one" / "two"
    target.mkdir(parents=True)
    (tmp_path / "secret").write_text("mine")
    with pytest.raises(CommandError, match=r"is not (extracted|copied)"):
        archive.unpack(packed(*members), target, "got")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / "secret"]


SYM, HARD, FILE, DIR = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.REGTYPE, tarfile.DIRTYPE
NAMES = ["a", "a/b", "a/b/c", "a/d", "a/...", "a/.../e"]
TARGETS = ["b", "..", ".", "d", "b/..", "...", ".../..", "../..", "../b", "b/c/../..", "c", "../../../x", "d/../../b"]
MEMBERS = st.one_of(
    st.tuples(st.sampled_from(NAMES[1:]), st.sampled_from(TARGETS), st.just(SYM)),
    st.tuples(st.sampled_from(NAMES), st.sampled_from([f"a/{name}" for name in ("b", "d", "b/c")]), st.just(HARD)),
    st.tuples(st.sampled_from(NAMES[1:]), st.just(b"x"), st.just(FILE)),
    st.tuples(st.sampled_from(NAMES), st.just(b""), st.just(DIR)),
)


@given(members=st.lists(MEMBERS, max_size=8))
@example(members=[("a/d", "b/..", SYM), ("a/b", "..", SYM)])
@example(members=[("a/...", ".", SYM), ("a/d", ".../..", SYM)])
@settings(max_examples=examples(60), deadline=None)
@pytest.mark.slow
def test_links_stay_inside_for_any_order_of_members(members: list[tuple[str, bytes | str, bytes]]) -> None:
    with TemporaryDirectory() as there:
        root = Path(there, "one", "root").resolve()
        root.mkdir(parents=True)
        with suppress(CommandError, OSError):
            archive.unpack(packed(*members), root, "got")
        for path in root.rglob("*"):
            real = Path(os.path.realpath(path))
            assert real == root or root in real.parents
        assert [*Path(there).iterdir(), *Path(there, "one").iterdir()] == [Path(there, "one"), root]


def test_hard_links_need_a_copied_file_only(tmp_path: Path) -> None:
    first: tuple[str, bytes | str, bytes] = ("a/x", b"1", FILE)
    assert archive.unpack(packed(first, ("a/new/hard", "a/x", HARD)), tmp_path, "got") == 2
    assert (tmp_path / "got" / "new" / "hard").read_text() == "1"
    with pytest.raises(CommandError, match="was not copied"):
        archive.unpack(packed(("a/hard", "a/y", HARD)), tmp_path, "got")


def test_unpacking_does_not_write_through_local_links(tmp_path: Path) -> None:
    outside, target = tmp_path / "outside", tmp_path / "target"
    outside.mkdir()
    (target / "got").mkdir(parents=True)
    (target / "got" / "way").symlink_to(outside)
    with pytest.raises(CommandError, match="because a link"):
        archive.unpack(packed(("a/way/evil", b"x", tarfile.REGTYPE)), target, "got")
    (outside / "kept").write_text("mine")
    (target / "got" / "file").symlink_to(outside / "kept")
    with pytest.raises(CommandError, match="because a link"):
        archive.unpack(packed(("a/file", b"x", tarfile.REGTYPE)), target, "got")
    assert (outside / "kept").read_text() == "mine"
    assert not (outside / "evil").exists()


def test_inner_links_and_modes_are_kept_without_set_user_id(tmp_path: Path) -> None:
    members: list[tuple[str, bytes | str, bytes]] = [
        ("a/x", b"1", tarfile.REGTYPE),
        ("a/hard", "a/x", tarfile.LNKTYPE),
        ("a/soft", "x", tarfile.SYMTYPE),
    ]
    assert archive.unpack(packed(*members), tmp_path, "got") == 2
    assert (tmp_path / "got" / "hard").read_text() == (tmp_path / "got" / "soft").read_text() == "1"
    assert (tmp_path / "got" / "x").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("sizes", [[1], [7, 3, 900], [10000]])
def test_chunks_are_read_like_a_file(sizes: list[int]) -> None:
    content = os.urandom(5000)
    pieces: list[bytes] = []
    at = 0
    while at < len(content):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(content[at : at + size])
        at += size
    file = archive.ChunkReader(iter(pieces))
    assert file.read(4097) + file.read(4097) == content
    assert file.read(1) == b""


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("a", "web/0/1:/tmp"), Upload(("a",), RankPath(Selection("web", 0, 1), "/tmp"))),
        (("a", "b", "web:/tmp/"), Upload(("a", "b"), RankPath(Selection("web"), "/tmp/"))),
        (("web/2:/var/log", "."), Download((RankPath(Selection("web", 2), "/var/log"),), ".")),
        (("./a:b", "web/0:x"), Upload(("./a:b",), RankPath(Selection("web", 0), "x"))),
    ],
)
def test_copy_addresses_are_parsed(words: tuple[str, ...], found: Upload | Download) -> None:
    assert direction(words) == found


@pytest.mark.parametrize(
    "words", [("a",), ("a", "b"), ("web/0:a", "web/1:b"), ("a", "web:b", "web:c"), ("web/0:/", ".")]
)
def test_invalid_copy_addresses_are_rejected(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        direction(words)


def test_copies_have_the_same_place_as_with_cp(tmp_path: Path) -> None:
    remote = RankPath(Selection("web", 0), "/var/log/app")
    there = str(tmp_path)
    assert destination_path(there, remote, "", [remote]) == (tmp_path, "app")
    assert destination_path(f"{there}/new", remote, "", [remote]) == (tmp_path, "new")
    assert destination_path(f"{there}/new/", remote, "", [remote]) == (tmp_path / "new", "app")
    assert destination_path(there, remote, "web-0-1", [remote]) == (tmp_path / "web-0-1", "app")
    assert (parse("web/0:/a/b").parent, parse("web/0:/a/b").name) == ("/a", "b")  # type: ignore[union-attr]  # it is remote


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (CommandExit(127, 'exec: "tar": executable file not found in $PATH'), "does not have tar"),
        (CommandExit(126, ""), "does not have tar"),
        (CommandExit(2, "tar: /no: Cannot open"), "web-0 .* tar: /no: Cannot open"),
        (CommandExit(1, ""), "exited with code 1"),
    ],
)
def test_missing_or_failing_tar_is_an_error(end: CommandExit, words: str) -> None:
    with pytest.raises(CommandError, match=words.replace(" .* ", ".*")):
        require_success(RANK, end)  # type: ignore[arg-type]  # only its name is used
    require_success(RANK, CommandExit(0, "tar: a note"))  # type: ignore[arg-type]  # likewise


def raw_header(kind: bytes, size: int) -> bytes:
    """Return the header of an archive member that declares more content than the archive contains."""
    member = tarfile.TarInfo("a/x")
    member.type, member.size = kind, size
    return member.tobuf(format=tarfile.GNU_FORMAT)


def pax_header(**fields: str) -> bytes:
    member = tarfile.TarInfo("a/x")
    member.pax_headers = fields
    return member.tobuf(format=tarfile.PAX_FORMAT)


SPARSE = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "9"}
BROKEN = {
    "empty": b"",
    "text": b"tar: not found" * 100,
    "no end": packed(("a/x", b"x", tarfile.REGTYPE)).getvalue()[:1024],
    "cut content": packed(("a/x", b"x" * 9999, tarfile.REGTYPE)).getvalue()[:2048],
    "cut header": packed(("a/x", b"x", tarfile.REGTYPE), ("a/y", b"y", tarfile.REGTYPE)).getvalue()[:1200],
    "garbage after a member": packed(("a/x", b"x", tarfile.REGTYPE)).getvalue()[:1024] + b"garbage!" * 512,
    "negative size": raw_header(tarfile.REGTYPE, -(2**40)) + bytes(10240),
    "NUL in a name": pax_header(path="a/x\0y") + bytes(10240),
    "nested": raw_header(tarfile.GNUTYPE_LONGNAME, 1) * 3000,
    "sparse map": pax_header(**SPARSE) + b"9" * 10240,
    "sparse": pax_header(**{"GNU.sparse.map": "1,2,3", "GNU.sparse.size": "x"}) + bytes(10240),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_archive_that_is_cut_or_invalid_is_one_error(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"^(the archive from the container|'a/x) [^\n]*$") as caught:
        archive.unpack(io.BytesIO(content), tmp_path, "got")
    assert len(str(caught.value)) < 400


class Endless:
    """A header with an infinite number of bytes. Reading more than a few MiB fails, which protects the disk."""

    def __init__(self, header: bytes) -> None:
        self._header = header
        self.count = 0

    def read(self, size: int) -> bytes:
        data, self._header = self._header[:size], self._header[size:]
        self.count += size
        assert self.count < 4 * archive.HEADERS_LIMIT
        return data + b"1\n" * ((size - len(data)) // 2)


HOSTILE = {
    "long name": raw_header(tarfile.GNUTYPE_LONGNAME, 2**36),
    "long link": raw_header(tarfile.GNUTYPE_LONGLINK, 2**36),
    "extended": raw_header(tarfile.XHDTYPE, 2**36),
    "global": raw_header(tarfile.XGLTYPE, 2**36),
    "sparse map": pax_header(**SPARSE, size=str(2**36)) + b"999999999\n",
}


@pytest.mark.parametrize("header", HOSTILE.values(), ids=HOSTILE)
def test_archive_headers_are_bounded_by_a_mebibyte(header: bytes, tmp_path: Path) -> None:
    stream = Endless(header)
    with pytest.raises(CommandError, match="has headers that exceed 1048576 bytes"):
        archive.unpack(cast("archive.Stream", stream), tmp_path, "got")


def test_archive_with_large_file_and_long_names_is_unpacked(tmp_path: Path) -> None:
    size, names = 3 * archive.HEADERS_LIMIT, [f"a/{letter * 200}" for letter in "bc"]
    members = [(name, bytes(size), tarfile.REGTYPE) for name in names]
    assert archive.unpack(packed(*members), tmp_path, "got") == 2
    assert [(tmp_path / "got" / name[2:]).stat().st_size for name in names] == [size, size]
