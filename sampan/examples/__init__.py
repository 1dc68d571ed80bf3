"""Programs that use sampan as a user does: public names only."""
