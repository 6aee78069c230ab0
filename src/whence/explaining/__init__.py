"""A user's words become one request; the request, one trace and one game for each removal; these, results with evidence."""
