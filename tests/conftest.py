"""What all tests stand on."""

from __future__ import annotations

import signal

# A suite that a script starts in the background inherits "ignore interrupts", and so would every `assay` it starts:
# the tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
