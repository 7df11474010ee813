"""Coding agents that the person already has, as backends: `cli:<preset>` and `acp:<preset or command>`.

They bring tools of their own and work by themselves, in the sandbox: one run of the program is one turn. What they say
and how they end are claims; the diff is what counts. Each program is one file here: what it is called, how it is
started, what it is given, how its output is read, and what is known to go wrong.
"""
