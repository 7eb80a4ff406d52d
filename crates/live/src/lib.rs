//! Live sessions: state that reacts while people speak.
