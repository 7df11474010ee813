"""How well a backend plays the roles: ten small cases for each, with answers that can be checked."""
