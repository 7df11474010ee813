"""The bus: everything that is said, durable and in the order of the ledger.

Rules:
- a message is written only along a route of `core.agent.routes`; what is refused is recorded, for the auditor to see;
- an id stands for one message of its run, whoever says it again after a crash;
- each subscriber has a cursor of its own in the ledger: one that is slow or dead blocks nobody and misses nothing;
- a subscriber's effects and its cursor are one transaction, so that a message is handled once in effect, whatever is
  killed when. What a handler does beside the rows that it returns may happen twice.
"""

from proofstone.adapters.bus.publishing import Bus, Letter, OffRouteError
from proofstone.adapters.bus.subscribing import Subscription

__all__ = ["Bus", "Letter", "OffRouteError", "Subscription"]
