"""What a program is seen doing, on record and before whoever watches; bounded, whatever it does."""

from __future__ import annotations

from assay.adapters.backends.programs.lines import relative
from assay.adapters.executors.site import Site
from assay.contracts.agent import Activity, ActivityKind

_MOST = 500
"""Activities of one turn that go on record."""
_LONGEST = 2000
"""Characters of one."""
_SHOWN = 120
_MOST_PATHS = 20


class Notes:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._count = 0

    def add(self, activity: Activity) -> None:
        self._watched(activity)
        self._count += 1
        if self._count <= _MOST or activity.kind is ActivityKind.REFUSED:
            self._site.noted(self._bounded(activity))
        elif self._count == _MOST + 1:
            self._site.noted(Activity(kind=ActivityKind.NOTE, text=f"more than {_MOST}: only refusals from here on"))

    def _watched(self, activity: Activity) -> None:
        match activity.kind:
            case ActivityKind.SAID:
                self._site.hear(f"{activity.text.rstrip()}\n")
            case ActivityKind.TOOL:
                self._site.doing(f"▸ {_line(activity)}")
            case ActivityKind.REFUSED:
                self._site.doing(f"✗ {_line(activity)}")

    def _bounded(self, activity: Activity) -> Activity:
        root = self._site.seen_at or self._site.work_tree
        paths = tuple(whole(relative(path, root)[:_LONGEST]) for path in activity.paths[:_MOST_PATHS])
        return activity.model_copy(
            update={"name": whole(activity.name[:_SHOWN]), "text": whole(activity.text[:_LONGEST]), "paths": paths}
        )


def _line(activity: Activity) -> str:
    about = ", ".join(activity.paths) or activity.text
    words = f"{activity.name} {about}" if activity.kind is ActivityKind.TOOL else f"{activity.name}: {activity.text}"
    return " ".join(words.split())[:_SHOWN]


def whole(text: str) -> str:
    """Without halves of characters, which JSON can spell and nothing can keep."""
    return text.encode("utf-8", "replace").decode()
