"""Memory for coding agents: answers to their hooks, one short process for each event, and how they are set up."""
