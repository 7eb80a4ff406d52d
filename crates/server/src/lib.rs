//! The REST API of ADK over any store.
