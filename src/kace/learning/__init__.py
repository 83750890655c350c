"""The offline learner: from a solver's failures to a frozen tree. Each step has a file of its own."""
