"""One input, read: what a reader may do with it, and what it may not."""

from __future__ import annotations

import atexit
import hashlib
import os
import random
import shutil
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from types import FrameType
from typing import Final
from zlib import crc32

from proofstone.errors import InternalError, ProofstoneError
from tests.fuzz.mutation import Mutator

CORPUS: Final = Path(__file__).parent / "corpus"
"""Inputs that a reader once failed on, one folder for each reader; they are seeds like any other."""
CPU_SECONDS: Final = 45.0
"""The time of the processor, not of the clock, that one input may take: far more than work in proportion to 64 KiB."""


@dataclass(frozen=True)
class Reader:
    """Something that reads what others wrote."""

    name: str
    read: Callable[[bytes], object]
    """Reads one input. It returns a value, or raises an error of our tree or one of `refuses`; an AssertionError of
    its own says that the value is not what it may be."""
    seeds: Callable[[], Sequence[bytes]]
    modules: tuple[str, ...]
    """The modules that decode what is read here."""
    refuses: tuple[type[Exception], ...] = ()
    """Refusals that are not of our tree because whoever calls the reader turns them into something else."""
    words: tuple[bytes, ...] = ()

    @cached_property
    def corpus(self) -> Sequence[bytes]:
        folder = CORPUS / self.name
        return [file.read_bytes() for file in sorted(folder.iterdir())] if folder.is_dir() else []

    @cached_property
    def mutator(self) -> Mutator:
        return Mutator((*self.seeds(), *self.corpus), self.words)

    def input(self, seed: str, number: int) -> bytes:
        return self.mutator.input(random.Random(f"{seed}:{self.name}:{number}"))

    def check(self, data: bytes) -> Failure | None:
        """Read the input and return what is wrong with how it was read."""
        try:
            with _bounded():
                self.read(data)
        except InternalError as error:
            return Failure.of(self.name, data, error)
        except ProofstoneError:
            return None
        except (Exception, _TooLongError) as error:  # noqa: BLE001  nothing else may come out of a reader
            if isinstance(error, self.refuses):
                return None
            return Failure.of(self.name, data, error)
        return None


@dataclass(frozen=True)
class Failure:
    reader: str
    data: bytes = field(repr=False)
    kind: str
    """The type of the exception, and the line of ours that it came from."""
    trace: str = field(repr=False)

    @classmethod
    def of(cls, reader: str, data: bytes, error: BaseException) -> Failure:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/proofstone/" in frame.filename]
        own = [frame for frame in frames if "/tests/fuzz/" not in frame.filename] or frames
        place = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "?"
        trace = "".join(traceback.format_exception(error))[-4000:]
        return cls(reader, data, f"{type(error).__name__} at {place}", trace)

    def save(self, folder: Path) -> Path:
        """Write the input to a file that is named after it, and return its path."""
        place = folder / self.reader
        place.mkdir(parents=True, exist_ok=True)
        file = place / hashlib.sha256(self.data).hexdigest()[:16]
        file.write_bytes(self.data)
        return file


class _TooLongError(BaseException):
    """The reader takes longer than work in proportion to the input could; no reader can catch it as an Exception."""


@contextmanager
def _bounded() -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise _TooLongError(f"more than {CPU_SECONDS:.0f} s of the processor")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


_MEMORY = Path("/dev/shm")


def folder(name: str) -> Path:
    """Return a folder of this name; it stays until the process ends."""
    place = _root(os.getpid()) / name
    place.mkdir(exist_ok=True)
    return place


@cache
def _root(_pid: int) -> Path:
    where = _MEMORY if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) else None
    made = Path(tempfile.mkdtemp(prefix="proofstone-fuzz-", dir=where))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def pick(data: bytes, count: int) -> int:
    """Return a number below `count` that depends on the input alone: which of several variants reads it."""
    return crc32(data) % count


def text_of(data: bytes) -> str:
    """Return the input as text; what is not UTF-8 is replaced, as readers of files and outputs do."""
    return data.decode("utf-8", "replace")
