"""Repeats recorded calls below the runner, in a test that asserts nothing.

    python proofstone_control.py pytest|unittest

An answer that is as recorded here and another in a plain process depends on the runner, and not on what a test set up.
Runs on Python 3.8 or later.
"""

import os
import sys
import tempfile

_TEST = """
import unittest
import proofstone_observe
import proofstone_replay

class TestControl(unittest.TestCase):
    def test_control(self):
        def test_call(function, arguments, options):
            return function(*arguments, **options)

        request = proofstone_observe.read_request({directory!r})
        proofstone_replay.replay({directory!r}, request, "control", test_call)
"""


def main(runner):
    here = os.path.dirname(os.path.abspath(__file__))
    folder = os.path.join(tempfile.mkdtemp(), "tests")
    os.mkdir(folder)
    path = os.path.join(folder, "test_control.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(_TEST.format(directory=os.environ.pop("PROOFSTONE_REPORT")))
    os.environ["PYTHONPATH"] = os.pathsep.join([here, folder, os.environ.get("PYTHONPATH", "")])
    options = [path, "-q", "-p", "no:cacheprovider", "--rootdir", folder] if runner == "pytest" else ["test_control"]
    os.execv(sys.executable, [sys.executable, "-m", runner, *options])


if __name__ == "__main__":
    main(sys.argv[1])
