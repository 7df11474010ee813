"""The control loop: what its roles hand each other, what they answer, and what it comes to.

messages.py  the contracts that pass between the roles on the bus
answers.py   what the models behind the roles answer; ids and verdicts that code can give are not theirs
requests.py  what they are asked
"""
