"""Agents that are asked whether they know what they are doing: before they work, and while they do.

board.py       what a person has added to a run, and the versions of what its agents are told
attendant.py   who attends to one agent: asks, hears, and has the rules decide
judging.py     what code cannot judge goes to the architect's model
sight.py       what really changed in a work tree, and which interfaces with it
listening.py   signs of life within a turn
"""
