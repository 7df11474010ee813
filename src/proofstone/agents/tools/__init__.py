"""Tools for in-process agents. What a role may do is enforced at each call, whatever the agent was told or says."""
