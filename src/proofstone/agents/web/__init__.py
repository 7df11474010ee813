"""Web search and page fetching for agents, by the providers that the user has configured."""
