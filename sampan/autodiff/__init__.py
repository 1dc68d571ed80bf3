"""Layer 3: reverse-mode differentiation of Programs, and what a backward Program keeps from its forward."""
