"""What passes between the steps of a run: for each role what it is given, and what it must answer.

Ids that an agent writes are its own: they hold within its answer, and the engine gives others. Whatever the engine
knows better (dates, counts, waves, who answered) an agent may leave out.
"""
