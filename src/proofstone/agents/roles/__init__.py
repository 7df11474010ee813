"""The roles of agents: the request, the answer, the tools and the prompt of each."""
