"""What the agents of a run have spent, and whether they may go on. Threads of several agents share one meter."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from proofstone.contracts.budget import Budget, Spent
from proofstone.core.agent.budget import exhausted, scopes


class Meter:
    def __init__(self, budget: Budget, spent: Iterable[tuple[str, str | None, Spent]] = ()) -> None:
        """`spent`: role, task and amount of what was spent before, by an earlier process."""
        self.budget = budget
        self._spent: dict[str, Spent] = {}
        self._stopped = ""
        self._lock = threading.Lock()
        for role, task, amount in spent:
            self.add(role, task, amount)

    def add(self, role: str, task: str | None, amount: Spent) -> None:
        with self._lock:
            for scope in scopes(role, task):
                self._spent[scope] = self._spent.get(scope, Spent()) + amount

    def exhausted(self, role: str, task: str | None) -> str:
        """Why an agent of that role, for that task, may not go on; empty if it may."""
        with self._lock:
            why = exhausted(self.budget, self._spent, role, task)
            self._stopped = self._stopped or why
            return why

    @property
    def stopped(self) -> str:
        """Why an agent was stopped, if one was: then the run stops, and everything is kept."""
        return self._stopped

    def spent(self, scope: str = "run") -> Spent:
        with self._lock:
            return self._spent.get(scope, Spent())
