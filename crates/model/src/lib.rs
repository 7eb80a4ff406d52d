//! Models behind agents.
