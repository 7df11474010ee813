"""Tools for in-process agents: what each may do is enforced at the call, whatever the agent was told or says."""
