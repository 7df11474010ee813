"""What the memory is made of and what follows from it. Pure: the store is an adapter.

remembering.py    a finished control loop, as entries
calibration.py    entries, as what the next plan must not do and should prefer
consolidation.py  entries of one kind, as one lesson
ageing.py         how much an entry still weighs
forgetting.py     what goes when a person wants something forgotten
words.py          when two texts are about the same
"""
