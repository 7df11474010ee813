"""The plugin packages of the repository, and the lists by which programs find them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from proofstone import __version__
from proofstone.hooks.plugins import PluginTarget, build_marketplace_files, build_plugin_files


def _read(files: Callable[[], Mapping[str, str]], name: str) -> str:
    return files()[name]


def _list_pages() -> dict[str, Callable[[], str]]:
    pages: dict[str, Callable[[], str]] = {
        name: partial(_read, build_marketplace_files, name) for name in build_marketplace_files()
    }
    for target in PluginTarget:
        build = partial(build_plugin_files, target, __version__)
        pages |= {f"plugins/{target}/{name}": partial(_read, build, name) for name in build()}
    return pages


PAGES: Mapping[str, Callable[[], str]] = _list_pages()
