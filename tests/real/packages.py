"""Real packages with their own tests, each with a bug to plant and repair, and with another way to break it.

Chosen for different build systems, layouts and test runners; all are pure, and their suites take seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Edit:
    """One place of one file: as its authors wrote it, and as it is wrong."""

    path: str
    honest: str
    wrong: str

    def plant(self, root: Path) -> None:
        file = root / self.path
        text = file.read_bytes().decode()
        assert text.count(self.honest) == 1, f"{file}: {self.honest!r} is there {text.count(self.honest)} times"
        file.write_bytes(text.replace(self.honest, self.wrong).encode())


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    built_by: str
    """Build system and layout, for people."""
    bug: Edit
    fixed: str
    """A test that the bug's repair mends: part of its id."""
    breakage: Edit
    regression: str
    """A test that the breakage breaks: part of its id."""
    requirements: tuple[str, ...] = ()
    """What its tests need, pinned."""
    breaks_off: bool = False
    """Whether the breakage ends the runner itself, so that nobody knows what the remaining tests would have said."""
    include: tuple[str, ...] = ()
    """Files that its own rules ignore and that it needs all the same: `environment.include`."""

    def __str__(self) -> str:
        return f"{self.name}-{self.version}"


PYTEST = "pytest==8.4.2"

PYTHON = (
    Package(
        name="iniconfig",
        version="2.3.1",
        built_by="setuptools with setuptools_scm, src/",
        bug=Edit("src/iniconfig/_parse.py", "section_name = line[1:-1]", "section_name = line[1:]"),
        fixed="test_iniconfig.py::test_",
        breakage=Edit("src/iniconfig/_parse.py", "return c in COMMENTCHARS", "return c not in COMMENTCHARS"),
        regression="test_iniconfig.py::test_iscommentline_true",
        requirements=(PYTEST,),
    ),
    Package(
        name="pluggy",
        version="1.7.0",
        built_by="setuptools with setuptools_scm, src/, and what pytest itself is built on",
        bug=Edit("src/pluggy/_execution.py", "hook call must provide argument {", "a hook call provides no argument {"),
        fixed="testing/test_details.py::test_",
        breakage=Edit(
            "src/pluggy/_execution.py",
            '_raise_wrapfail(function_gen, "did not yield")',
            '_raise_wrapfail(function_gen, "has second yield")',
        ),
        regression="testing/test_multicall.py::test_",
        requirements=(PYTEST,),
    ),
    Package(
        name="h11",
        version="0.16.0",
        built_by="setup.py, flat, tests inside the package",
        bug=Edit("h11/_headers.py", "elif seen_content_length != value:", "elif seen_content_length is value:"),
        fixed="h11/tests/test_headers.py::test_normalize_and_validate",
        breakage=Edit("h11/_headers.py", "if len(lengths) != 1:", "if len(lengths) == 1:"),
        regression="h11/tests/test_headers.py::test_normalize_and_validate",
        requirements=(PYTEST,),
    ),
    Package(
        name="idna",
        version="3.20",
        built_by="flit, flat",
        bug=Edit("idna/core.py", "return len(label) <= 63", "return len(label) <= 64"),
        fixed="tests/test_idna.py::",
        breakage=Edit("idna/core.py", 'if label[2:4] == "--":', 'if label[2:4] == "-":'),
        regression="tests/test_idna",
        requirements=(PYTEST, "hypothesis==6.135.0"),
    ),
    Package(
        name="itsdangerous",
        version="2.2.0",
        built_by="flit, src/",
        bug=Edit(
            "src/itsdangerous/encoding.py",
            'return base64.urlsafe_b64encode(string).rstrip(b"=")',
            "return base64.urlsafe_b64encode(string)",
        ),
        fixed="test_signer.py::TestSigner::test_broken_signature",
        breakage=Edit("src/itsdangerous/timed.py", "if age > max_age:", "if age < max_age:"),
        regression="test_timed.py::",
        requirements=(PYTEST, "freezegun==1.5.5"),
    ),
    Package(
        name="inflection",
        version="0.5.1",
        built_by="setup.py, flat, one test file at the root",
        bug=Edit(
            "inflection/__init__.py",
            "return string[0].lower() + camelize(string)[1:]",
            "return string[0] + camelize(string)[1:]",
        ),
        fixed="test_inflection.py::test_camelize",
        breakage=Edit(
            "inflection/__init__.py", "(r\"(?i)(octop|vir)us$\", r'\\1i')", "(r\"(?i)(octop|vir)us$\", r'\\1uses')"
        ),
        regression="test_inflection.py::test_pluralize",
        requirements=(PYTEST,),
    ),
    Package(
        name="humanize",
        version="4.16.0",
        built_by="hatch with hatch-vcs, src/",
        bug=Edit(
            "src/humanize/filesize.py", "base = 1024 if (gnu or binary) else 1000", "base = 1024 if binary else 1000"
        ),
        fixed="tests/test_filesize.py::test_naturalsize",
        breakage=Edit("src/humanize/filesize.py", "if abs_bytes == 1 and not gnu:", "if abs_bytes == 2 and not gnu:"),
        regression="tests/test_filesize.py::test_naturalsize",
        requirements=(PYTEST, "freezegun==1.5.5", "pytest-codspeed==4.0.0"),
        include=("src/humanize/_version.py",),
    ),
    Package(
        name="tomlkit",
        version="0.15.2",
        built_by="poetry, flat",
        bug=Edit("tomlkit/_utils.py", "offset = -offset", "offset = +offset"),
        fixed="tests/test_utils.py::test_parse_rfc3339",
        breakage=Edit(
            "tomlkit/_utils.py", 'day = int(m.group("day"))\n        hour', 'day = int(m.group("month"))\n        hour'
        ),
        regression="tests/test_utils.py::test_parse_rfc3339",
        requirements=(PYTEST, "PyYAML==6.0.2"),
    ),
    Package(
        name="iso8601",
        version="2.1.0",
        built_by="poetry, flat, tests inside the package",
        bug=Edit("iso8601/iso8601.py", "        minutes = -minutes\n", "        minutes = +minutes\n"),
        fixed="iso8601/test_iso8601.py::test_parse_valid_date",
        breakage=Edit(
            "iso8601/iso8601.py", 'minute=int(groups.get("minute", 0))', 'minute=int(groups.get("second", 0))'
        ),
        regression="iso8601/test_iso8601.py::test_",
        requirements=(PYTEST, "hypothesis==6.135.0", "pytz==2025.2"),
    ),
    Package(
        name="cachetools",
        version="8.0.0",
        built_by="setuptools, src/, unittest classes run by pytest",
        bug=Edit(
            "src/cachetools/__init__.py",
            "self.__order.move_to_end(key)\n        except KeyError:  # __missing__ may not store item",
            "self.__order.get(key)\n        except KeyError:  # __missing__ may not store item",
        ),
        fixed="tests/test_lru.py::LRUCacheTest::test_lru",
        breakage=Edit(
            "src/cachetools/keys.py",
            "return key + tuple(map(type, args))\n\n\ndef typedmethodkey",
            "return key\n\n\ndef typedmethodkey",
        ),
        regression="tests/test_keys.py::CacheKeysTest::test_typedkey",
        requirements=(PYTEST,),
    ),
    Package(
        name="Unidecode",
        version="1.4.0",
        built_by="setup.py, flat, unittest classes that tox.ini runs with pytest",
        bug=Edit("unidecode/__init__.py", "repl = replace_str", "repl = '?'"),
        fixed="replace_str",
        breakage=Edit("unidecode/__init__.py", "repl = char\n", "repl = 'c'\n"),
        regression="preserve",
        requirements=(PYTEST,),
    ),
    Package(
        name="pyasn1",
        version="0.6.5",
        built_by="setuptools, flat, unittest",
        bug=Edit("pyasn1/type/tag.py", "return self[:-1] + superTag", "return self + superTag"),
        fixed="testImplicitTag",
        breakage=Edit(
            "pyasn1/type/tag.py",
            "if superTag.tagFormat != tagFormatConstructed:",
            "if superTag.tagFormat == tagFormatConstructed:",
        ),
        regression="ExpTagged",
    ),
    Package(
        name="webcolors",
        version="25.10.0",
        built_by="pdm, src/",
        bug=Edit(
            "src/webcolors/_normalization.py", '"".join(2 * s for s in hex_digits)', '"".join(hex_digits + hex_digits)'
        ),
        fixed="tests/test_normalization.py::",
        breakage=Edit(
            "src/webcolors/_normalization.py",
            "return 0 if value < 0 else 255 if value > 255 else value",
            "return 0 if value < 0 else value",
        ),
        regression="tests/test_normalization.py::",
        requirements=(PYTEST,),
    ),
    Package(
        name="toolz",
        version="1.2.0",
        built_by="setuptools, flat, tests inside the package",
        bug=Edit("toolz/itertoolz.py", "return zip_longest(*args, fillvalue=pad)", "return zip_longest(*args)"),
        fixed="toolz/tests/test_itertoolz.py::test_partition",
        breakage=Edit(
            "toolz/dicttoolz.py",
            "def keyfilter(predicate, d, factory=dict):",
            "def keyfilter(predicate, d, factory=list):",
        ),
        regression="toolz/tests/test_",
        requirements=(PYTEST,),
    ),
)

NODE = (
    Package(
        name="reusify",
        version="1.1.0",
        built_by="tape, one test file at the root",
        bug=Edit("reusify.js", "    tail.next = obj\n", "    head.next = obj\n"),
        fixed="reuse more than 2 objects",
        breakage=Edit("reusify.js", "      head = new Constructor()\n", "      head = current\n"),
        regression="reuse objects",
        requirements=("tape@5.9.0",),
    ),
    Package(
        name="minimist",
        version="1.2.8",
        built_by="tape behind nyc, test/",
        bug=Edit("index.js", "value = value !== 'false';", "value = value === 'false';"),
        fixed="boolean --boool=true",
        breakage=Edit("index.js", "setArg(key, false, arg);", "setArg(key, true, arg);"),
        regression="comprehensive",
        requirements=("tape@5.9.0", "nyc@10.3.2"),
    ),
    Package(
        name="fast-uri",
        version="4.2.3",
        breaks_off=True,
        built_by="tape with an unquoted pattern, test/",
        bug=Edit(
            "index.js",
            "normalizedA !== undefined && normalizedB !== undefined && normalizedA === normalizedB",
            "normalizedA === normalizedB",
        ),
        fixed="URI Equals rejects malformed object input",
        breakage=Edit(
            "lib/utils.js", "parts[i] = parseInt(part, 16).toString(16)", "parts[i] = parseInt(part, 16).toString(10)"
        ),
        regression="IPv6",
        requirements=("tape@5.9.0", "ajv@8.17.1"),
    ),
    Package(
        name="object-path",
        version="0.11.8",
        built_by="mocha, one test file at the root",
        bug=Edit("index.js", "arr.splice(at, 0, value)", "arr.splice(at, 1, value)"),
        fixed="insert should insert in another index",
        breakage=Edit("index.js", "obj.splice(currentPath, 1)", "obj.splice(currentPath, 0)"),
        regression="del should remove items from existing array",
        requirements=("mocha@9.2.2", "chai@4.5.0"),
    ),
)
