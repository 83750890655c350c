"""The ladder behind OpenAI's chat completions and as tools of agents: who asks for an answer gets the voted one."""
