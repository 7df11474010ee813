"""Coding agents that the user has installed, as backends: `cli:<preset>` and `acp:<preset or command>`.

They have tools of their own and work by themselves in the sandbox: one run of the program is one turn. What they say
and how they end are claims; only the diff counts. Each program has one file in `known`: its name, how it is started,
what it is given, how its output is read, and its known problems.
"""
