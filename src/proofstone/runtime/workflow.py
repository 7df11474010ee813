"""The workflow driver: it performs the effects that a workflow yields, and sends it the results.

A workflow is a generator that decides, and does nothing else: it has no clock, no files and no processes. It yields an
effect, or a tuple of effects that may be performed in parallel, and receives the result, or the results in the same
order. For each type of effect there is a handler, which returns an operation: how to perform this effect, under which
name its result is recorded, and whom the observer is told about.

A result is recorded before the workflow receives it. A run that was killed, or that waits for a person, executes its
workflow again from the beginning: recorded results are looked up, and only what is missing is performed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from pydantic import JsonValue

from proofstone.common.models import BudgetUsage
from proofstone.common.serialization import deserialize, serialize
from proofstone.errors import UnavailableError
from proofstone.ledger.schema import LedgerRow
from proofstone.runtime.journal import Journal

ResultT = TypeVar("ResultT")
EndT = TypeVar("EndT")
JobResult = TypeVar("JobResult")
_RESULT: Final = "result"
_WAIT_SECONDS: Final = 0.5


class AgentObserver(Protocol):
    """Observes the agents of a run. Agents work in parallel, so it is called from several threads."""

    def on_agent_started(self, agent: str, about: str) -> None:
        """An agent starts. `agent` is its name, such as `researcher:impact`; `about` says what it works on."""
        ...

    def on_activity(self, agent: str, line: str) -> None:
        """The current activity of the agent, in one line that replaces the previous one."""
        ...

    def on_message(self, agent: str, line: str) -> None:
        """A message for the user: a question, a pause, a warning."""
        ...

    def on_agent_ended(self, agent: str, said: str, *, failed: bool) -> None:
        """The result in one line: `3 subtasks`, or why there is no answer."""
        ...

    def on_spending(self, spent: BudgetUsage) -> None:
        """What the agents of the run have spent so far."""
        ...


def encode_result(result: object) -> Mapping[str, JsonValue]:
    """Return the journal entry of a result whose class has a stable name."""
    return {_RESULT: serialize(result)}


def decode_result(payload: Mapping[str, JsonValue]) -> Any:  # noqa: ANN401  the journal names the type
    """Return the result of a journal entry that `encode_result` has built."""
    return deserialize(payload[_RESULT])


@dataclass(frozen=True)
class Operation(Generic[ResultT]):
    """How one effect is performed, recorded and shown."""

    perform: Callable[[], ResultT]
    step: str = ""
    """The name of the step in the journal. Without a name, a resumed run performs the effect again."""
    input: str = ""
    """Everything that the result depends on. The journal refuses another input under the same name."""
    encode: Callable[[ResultT], Mapping[str, JsonValue] | None] = encode_result
    """Returns the journal entry of a result. None for a result that is not final: it is not recorded, and a resumed run
    performs the effect again."""
    decode: Callable[[Mapping[str, JsonValue]], ResultT] = decode_result
    build_rows: Callable[[ResultT], tuple[LedgerRow, ...]] = lambda _: ()
    """Returns further rows, which are written in one transaction with the journal entry."""
    on_result: Callable[[ResultT], object] = lambda _: None
    """Called with every result before the workflow receives it, whether it was performed or looked up."""
    in_thread: bool = False
    """Whether it needs a thread. Then all effects that are yielded with it run in threads, if `drive` has `cancel`."""
    agent: str = ""
    """The agent that performs the effect, for the observer."""
    about: str = ""
    """What the agent works on, for the observer."""
    describe: Callable[[ResultT], tuple[str, bool]] = lambda _: ("", False)
    """Returns the result in one line, and whether the agent failed."""


Handler = Callable[[Any], Operation[Any]]
"""Returns the operation of an effect. It is called in the thread of the driver, one effect after the other."""
Handlers = Mapping[type, Handler]


class QuestionPendingError(Exception):
    """A workflow asks a question that nobody can answer now. The run ends here and can be resumed."""

    def __init__(self, effect: object) -> None:
        super().__init__(str(effect))
        self.effect = effect


def drive(
    workflow: Generator[Any, Any, EndT],
    handlers: Handlers,
    journal: Journal | None = None,
    observer: AgentObserver | None = None,
    *,
    max_parallel: int = 1,
    cancel: threading.Event | None = None,
) -> EndT:
    """Perform the effects of a workflow until it ends, and return its result.

    `cancel` ends the operations that run in threads when one of them fails or the run is interrupted.
    """
    results: Any = None
    while True:
        try:
            effects = workflow.send(results)
        except StopIteration as stop:
            ended: EndT = stop.value
            return ended
        if isinstance(effects, tuple):
            operations = [handlers[type(effect)](effect) for effect in effects]
            results = _perform_all(operations, journal, observer, max_parallel, cancel)
        else:
            (results,) = _perform_all([handlers[type(effects)](effects)], journal, observer, max_parallel, cancel)


def _perform_all(
    operations: list[Operation[Any]],
    journal: Journal | None,
    observer: AgentObserver | None,
    max_parallel: int,
    cancel: threading.Event | None,
) -> tuple[Any, ...]:
    if cancel is None or not any(operation.in_thread for operation in operations):
        return tuple(_perform(operation, journal, observer) for operation in operations)
    return run_parallel(
        [partial(_perform, operation, journal, observer) for operation in operations], max_parallel, cancel
    )


def _perform(operation: Operation[ResultT], journal: Journal | None, observer: AgentObserver | None) -> ResultT:
    if journal is not None and operation.step:
        recorded = journal.lookup(operation.step, operation.input)
        if recorded is not None:
            result = operation.decode(recorded)
            operation.on_result(result)
            return result
    if observer is not None and operation.agent:
        observer.on_agent_started(operation.agent, operation.about)
    result = operation.perform()
    # The operation may have recorded its result itself, as agents do: in one transaction with the last message.
    if journal is not None and operation.step and journal.lookup(operation.step, operation.input) is None:
        payload = operation.encode(result)
        if payload is not None:
            journal.record(operation.step, operation.input, payload, *operation.build_rows(result))
    if observer is not None and operation.agent:
        said, failed = operation.describe(result)
        observer.on_agent_ended(operation.agent, said, failed=failed)
    operation.on_result(result)
    return result


def wait_for(future: Future[ResultT]) -> ResultT:
    """Return the result of a future that the main thread waits for.

    It waits in short intervals: a signal that arrives just before a wait is only handled after it.
    """
    while not wait([future], timeout=_WAIT_SECONDS).done:
        pass
    return future.result()


def run_parallel(
    jobs: Sequence[Callable[[], JobResult]], max_parallel: int, cancel: threading.Event
) -> tuple[JobResult, ...]:
    """Run the jobs in threads and return their results, in order.

    - Whatever ends this call early, such as an interruption, ends all jobs: running jobs check `cancel`, and waiting
      jobs never start.
    - If a provider is unavailable, the other jobs run to their end: they may use other providers, and are paid for.
    - Even a single job gets a thread, so that an interruption never hits it in the middle.
    """
    with ThreadPoolExecutor(max_workers=max_parallel) as pool:
        try:
            futures = [pool.submit(job) for job in jobs]
            pending = set(futures)
            while True:
                # Wait in short intervals: a signal that arrives just before a wait is only handled after it.
                done, pending = wait(pending, timeout=_WAIT_SECONDS, return_when=FIRST_EXCEPTION)
                for future in done:
                    error = future.exception()
                    if error is not None and not isinstance(error, UnavailableError):
                        raise error
                if not pending:
                    return tuple(future.result() for future in futures)
        except BaseException:
            cancel.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
