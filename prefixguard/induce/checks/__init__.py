"""What an adapter must hold before it is frozen."""
