//! Tests only: Sessile and google-adk on one database. See `tests/google_adk`.
