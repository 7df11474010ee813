"""The rules of the memory. Pure.

calibration.py    derives from entries what the next plan must not do and should prefer, and what to forget
consolidation.py  combines similar entries into lessons, and weighs entries by age
lessons.py        sorts the lessons that the knowledge role hands over
"""
