//! Agents described in YAML, in the format of ADK.
