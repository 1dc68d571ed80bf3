"""What all tests share: that Ctrl-C reaches the programs they start."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job; the programs that tests start would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
