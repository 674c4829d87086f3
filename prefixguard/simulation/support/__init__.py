"""The world `support`: a customer service agent of an online shop."""
