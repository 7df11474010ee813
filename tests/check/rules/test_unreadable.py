"""What a reader of a change cannot read, or reads as something else."""

from __future__ import annotations

import io
import pickle
import zipfile

import pytest

from proofstone.check.rules.disguised_names import find_disguised_names
from proofstone.check.rules.loaded_code import find_unseen_code
from proofstone.check.rules.opaque_files import OpaqueKind, find_opaque_file
from proofstone.check.variants.views import plain_lines, split_views
from tests.rows import each_row


def archive(name: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr(name, "x")
    return stream.getvalue()


PNG = b"\x89PNG\r\n\x1a\n\0\0\0"
OPAQUE: dict[str, tuple[str, bytes, OpaqueKind | None]] = {
    "an extension module": ("shop/_fast.so", b"\x7fELF\2\1\1\0", OpaqueKind.PROGRAM),
    "under another name": ("shop/table.dat", b"\x7fELF\2\1\1\0", OpaqueKind.PROGRAM),
    "WebAssembly": ("web/a.wasm", b"\0asm\1\0\0\0", OpaqueKind.PROGRAM),
    "a pickle": ("shop/model.bin", pickle.dumps({"a": 1}), OpaqueKind.PICKLE),
    "an old pickle": ("shop/model.pkl", pickle.dumps([1, "a"], protocol=0), OpaqueKind.PICKLE),
    "a wheel": ("vendor/a.whl", archive("a/b.py"), OpaqueKind.ARCHIVE),
    "a picture with a program behind it": ("logo.png", PNG + archive("a/__main__.py"), OpaqueKind.ARCHIVE),
    "unknown bytes": ("shop/data.bin", b"\1\0\2\0", OpaqueKind.BYTES),
    "a picture": ("logo.png", PNG, None),
    "text": ("a.py", b"x = 1\n", None),
    "text in UTF-16": ("a.txt", "text".encode("utf-16"), None),
    "an archive of texts is unknown": ("a.zip", archive("a.txt"), OpaqueKind.BYTES),
}


@each_row(("path", "content", "kind"), OPAQUE.values())
def test_bytes_that_may_be_code_need_a_persons_word(path: str, content: bytes, kind: OpaqueKind | None) -> None:
    found = find_opaque_file(path, None, content)
    assert (found and found.kind) == kind
    assert found is None or found.needs_decision == (kind is not OpaqueKind.BYTES)


def test_among_samples_and_where_it_was_so_before_it_only_lowers_the_confidence() -> None:
    content = pickle.dumps({"a": 1})
    for path, old in (("tests/data/a.pkl", None), ("fixtures/a.pkl", None), ("shop/a.pkl", pickle.dumps(2))):
        found = find_opaque_file(path, old, content)
        assert found is not None and not found.needs_decision
    replaced = find_opaque_file("shop/a.pkl", b"text\n", content)
    assert replaced is not None and replaced.needs_decision


DISGUISED = {
    "\u0441alc = 1": "<U+0441>alc reads as 'calc'",
    "\uff45val(x)": "<U+FF45>val reads as 'eval'",
    "ad\u200bmin = 1": "U+200B ZERO WIDTH SPACE",
    "x = 1  # \u202e gnihton": "U+202E RIGHT-TO-LEFT OVERRIDE",
    "a = 1\n\u0430 = 2": "<U+0430> reads as 'a'",
}
ORDINARY = [
    "\u0394x = \u03b1_max",
    "\u0438\u043c\u044f = 1",
    "na\u00efve = 1",
    "x = '\U0001f469\u200d\U0001f4bb'",
    "\u0430 = 2",
]


@each_row(("code", "detail"), DISGUISED.items())
def test_a_name_that_reads_as_another_is_shown_with_its_code_points(code: str, detail: str) -> None:
    (found,) = find_disguised_names(plain_lines(code.encode()), {1, 2})
    assert detail in found.detail
    assert found.detail.isascii()


@each_row("code", ORDINARY)
def test_other_scripts_and_formulas_are_no_disguise(code: str) -> None:
    assert not list(find_disguised_names(plain_lines(code.encode()), {1}))


BLOB = "'" + "QUJD" * 80 + "'"
UNSEEN = {
    f"import base64\nDATA = {BLOB}\ntext = base64.b64decode(DATA)\n\n\n\n\nexec(text)\n": ("encoded", True),
    "import zlib\ncode = marshal.loads(zlib.decompress(read()))\n": ("encoded", False),
    "exec(open('rules.txt').read())\n": ("loaded", False),
    "model = pickle.load(file)\n": ("loaded", False),
    "lib = ctypes.CDLL('./x.bin')\n": ("loaded", False),
    "spec = importlib.util.spec_from_file_location('a', 'a.txt')\n": ("loaded", False),
}
SEEN = [
    "data = base64.b64decode(text)\n",
    "re.compile(x)\n",
    "'''exec(open(x).read())'''\n",
    "value = json.load(file)\n",
]


@each_row(("code", "expected"), UNSEEN.items())
def test_code_that_runs_what_nobody_reads_is_named(code: str, expected: tuple[str, bool]) -> None:
    lines = split_views("a.py", code.encode()) or plain_lines(code.encode())
    found = list(find_unseen_code(lines, range(1, 20), is_test=False))
    assert expected in [("encoded" if unseen.is_encoded else "loaded", unseen.needs_decision) for unseen in found]


@pytest.mark.parametrize("code", SEEN)
def test_ordinary_code_is_not(code: str) -> None:
    lines = split_views("a.py", code.encode()) or plain_lines(code.encode())
    assert not list(find_unseen_code(lines, range(1, 20), is_test=False))
