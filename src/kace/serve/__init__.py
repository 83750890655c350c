"""The ladder behind OpenAI's chat completions: any client that can change its base URL gets the KACE answer."""
