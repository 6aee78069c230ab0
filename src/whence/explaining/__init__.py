"""From a user's words to results.

They become one request; the request becomes one trace, and one game for each removal; and these
become attributions with evidence.
"""
