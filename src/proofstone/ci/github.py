"""Ask GitHub's API about a pull request, and keep one comment on it up to date.

The token comes from the job and is never passed to a check. A request that fails is an error with the status and
GitHub's own message; the caller decides whether the result of the check still stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from proofstone.ci.rules.approvals import Review
from proofstone.ci.rules.comment import MARKER
from proofstone.errors import MachineError

if TYPE_CHECKING:
    import httpx2

_SECONDS: Final = 30
_PAGE: Final = 100
_MAX_PAGES: Final = 10
_OWN_APP: Final = "github-actions[bot]"


@dataclass(frozen=True)
class GitHub:
    """One pull request on GitHub."""

    api: str
    repository: str
    number: int
    token: str

    def list_reviews(self) -> list[Review]:
        """Return the reviews of the pull request."""
        return [
            Review(by=_login(entry), body=str(entry.get("body") or ""), commit=str(entry.get("commit_id") or ""))
            for entry in self._list(f"pulls/{self.number}/reviews")
        ]

    def find_permission(self, login: str) -> str:
        """Return the permission of a person in the repository: admin, maintain, write, triage, read or none."""
        answer = self._ask("GET", f"collaborators/{login}/permission")
        return (
            str(answer.get("role_name") or answer.get("permission") or "none") if isinstance(answer, dict) else "none"
        )

    def write_comment(self, text: str) -> str:
        """Write the comment, or replace the one of an earlier run. Return its address."""
        for entry in self._list(f"issues/{self.number}/comments"):
            is_own = str(entry.get("body") or "").startswith(MARKER) and _is_written_by_app(entry)
            if is_own:
                answer = self._ask("PATCH", f"issues/comments/{int(entry['id'])}", {"body": text})
                return str(answer.get("html_url") or "") if isinstance(answer, dict) else ""
        answer = self._ask("POST", f"issues/{self.number}/comments", {"body": text})
        return str(answer.get("html_url") or "") if isinstance(answer, dict) else ""

    def _list(self, path: str) -> Iterator[Mapping[str, Any]]:
        for page in range(1, _MAX_PAGES + 1):
            entries = self._ask("GET", f"{path}?per_page={_PAGE}&page={page}")
            if not isinstance(entries, list):
                return
            yield from (entry for entry in entries if isinstance(entry, dict))
            if len(entries) < _PAGE:
                return

    def _ask(self, method: str, path: str, body: Mapping[str, str] | None = None) -> object:
        import httpx2

        url = f"{self.api}/repos/{self.repository}/{path}"
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "proofstone",
        }
        try:
            response = httpx2.request(method, url, headers=headers, json=body, timeout=_SECONDS)
            if response.status_code >= 400:
                raise MachineError(f"GitHub refused {method} {path}: {_describe_refusal(response)}")
            return response.json()
        except httpx2.HTTPError as error:
            raise MachineError(f"GitHub could not be reached for {method} {path}: {error}") from error
        except ValueError as error:
            raise MachineError(f"GitHub's answer to {method} {path} is not JSON") from error


def _login(entry: Mapping[str, Any]) -> str:
    user = entry.get("user")
    return str(user.get("login") or "") if isinstance(user, dict) else ""


def _is_written_by_app(entry: Mapping[str, Any]) -> bool:
    """Return whether the job's own app wrote the comment. The token of a job may not edit what others wrote."""
    user = entry.get("user")
    return isinstance(user, dict) and (user.get("type") == "Bot" or user.get("login") == _OWN_APP)


def _describe_refusal(response: httpx2.Response) -> str:
    try:
        document = response.json()
        message = str(document.get("message") or "") if isinstance(document, dict) else ""
    except ValueError:
        message = ""
    return f"{response.status_code} {message}".strip()
