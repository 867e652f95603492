"""The papers' tables and figures again; `python -m experiments --help` says how."""
