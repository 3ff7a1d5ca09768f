"""The paper's experiments; ``jobs/reproduce_paper.py`` runs them. No part of the library."""
