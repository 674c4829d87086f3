"""One file a command. Each is a thin twin of a public function: it reads options, calls, prints."""
