"""What airspeed velocity imports; see ratios.py."""
