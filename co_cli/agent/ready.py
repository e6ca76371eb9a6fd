"""An agent that is ready to talk to: `clai --agent co_cli.agent:agent --model ollama:qwen3`.

It has no model of its own: whoever runs it names one. `co chat` knows the setting `model` as well.
"""

from __future__ import annotations

from pydantic_ai import Agent

from co_cli.agent.capability import Knowledge

agent: Agent[object, str] = Agent(
    name="co", instructions="You are a helpful assistant. Answer briefly.", capabilities=[Knowledge()]
)
