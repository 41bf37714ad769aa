"""How sure we are: resampling and intervals over clusters that share errors."""
