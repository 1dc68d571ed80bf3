"""Layer 3: passes over Programs; each is a function Program -> Program in a file of its own."""
